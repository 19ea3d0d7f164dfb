// A gateway of a few lines, behind a WebSocket class: tests look at what comes, and say what is answered.

import { Weir } from "../weir.js";

export class Gateway {
  connections = [];
  #wanted = [];

  /** A client of it, and its first connection, open. */
  async connect(options = {}) {
    const weir = this.client(options);
    return { weir, connection: (await this.next()).open() };
  }

  client(options = {}) {
    const gateway = this;
    class WebSocket {
      constructor(url) {
        gateway.#add(new Connection(url, this));
      }
    }
    return new Weir("ws://device:7410/", "app:page", { minDelay: 1, maxDelay: 4, WebSocket, ...options });
  }

  /** The next connection that nobody has seen yet. */
  next() {
    if (this.connections.length) return Promise.resolve(this.connections.shift());
    return new Promise((resolve) => this.#wanted.push(resolve));
  }

  #add(connection) {
    const wanted = this.#wanted.shift();
    wanted ? wanted(connection) : this.connections.push(connection);
  }
}

class Connection {
  sent = [];
  #wanted = [];

  constructor(url, socket) {
    this.url = url;
    this.socket = socket;
    this.closed = false;
    socket.send = (text) => this.#add(JSON.parse(text));
    socket.close = () => (this.closed = true);
  }

  open() {
    this.socket.onopen({});
    return this;
  }

  break(code = 1006, reason = "") {
    this.socket.onclose({ code, reason });
  }

  /** The next message of the client. */
  read() {
    if (this.sent.length) return Promise.resolve(this.sent.shift());
    return new Promise((resolve) => this.#wanted.push(resolve));
  }

  write(message) {
    this.socket.onmessage({ data: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  }

  /** Reads a request, answers it, and returns it. */
  async answer(result) {
    const request = await this.read();
    this.write({ id: request.id, result });
    return request;
  }

  event(pattern, topic, sequence, payload = null) {
    const params = { pattern, topic, sequence, retained: false, sender: "settings", payload };
    this.write({ method: "events.event", params });
  }

  #add(message) {
    const wanted = this.#wanted.shift();
    wanted ? wanted(message) : this.sent.push(message);
  }
}

/** Lets everything run that waits for nothing. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

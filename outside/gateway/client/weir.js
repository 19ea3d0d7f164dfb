// A client of Weir's gateway: JSON-RPC 2.0 over one WebSocket that connects again by itself.
// weir.d.ts says what each method does. No call is ever repeated. Subscriptions and served contracts are wishes: every
// new connection is asked for them again.

const CONNECT_MS = 15_000; // For a ticket and the handshake.
const WAIT_MS = 60_000; // For the answer to a call without a timeout.
const GRACE_MS = 1_000; // Within it comes the gateway's own word that the time is over.
const LONGEST_MS = 2 ** 31 - 2_000; // Of a timer: 24 days.
const TOPICS_MAX = 4096; // Topics of a subscription whose last number is known, as many as Main keeps.

export class WeirError extends Error {
  constructor(code, message, provider = false) {
    super(message);
    Object.assign(this, { name: "WeirError", code, provider });
  }
}

export class Weir {
  #address; #options; #connection; #socket; #openedAt; #timer; #state; #attempts = 0; #wasOpen = false; #lastId = 0;
  #asked = new Map(); // Questions by id: sent, or waiting for a connection.
  #abandoned = new Set(); // Ids of takes that nobody waits for: their job goes back.
  #wishes = new Map(); // Subscriptions and served contracts, by what is asked.
  #inHand = new Map(); // Requests to this program by id: an AbortController for each.
  #listeners = { open: new Set(), close: new Set(), error: new Set(), notification: new Set() };

  constructor(url, name, options = {}) {
    this.#options = { minDelay: 250, maxDelay: 15_000, WebSocket: globalThis.WebSocket, ...options };
    if (!this.#options.WebSocket) throw new TypeError("there is no WebSocket here: give one as `WebSocket`");
    this.#address = `${url.replace(/\/+$/, "")}/v1/peers/${name}/rpc`;
    this.#connect();
  }

  get state() { return this.#state; }

  on(event, listener) {
    this.#listeners[event].add(listener);
    return () => void this.#listeners[event].delete(listener);
  }

  async call(method, params, options) {
    // JSON-RPC knows no other params than objects and arrays.
    const isObject = params == null || typeof params === "object";
    const payload = isObject ? (params ?? undefined) : new TextEncoder().encode(JSON.stringify(params));
    return unpack(await this.#ask(method, pack(payload), options));
  }

  publish(topic, payload, { to, ...options } = {}) {
    return this.#ask("events.publish", { topic, payload: pack(payload), to }, options);
  }

  put(queue, payload, { untilDone, ...options } = {}) {
    const params = { queue, payload: pack(payload), "until-done": untilDone };
    return this.#ask("queues.put", params, { timeoutMs: untilDone ? LONGEST_MS : undefined, ...options });
  }

  async take(queue, options) {
    const job = await this.#ask("queues.take", { queue }, { timeoutMs: 30_000, ...options });
    const connection = this.#connection; // Another one may have another job of this number.
    const end = async (how) => {
      if (connection !== this.#connection) throw lost("the job went back to its queue when the connection broke");
      await this.#ask(`queues.${how}`, { job: job.job });
    };
    return job && { ...job, payload: unpack(job.payload), done: () => end("done"), return: () => end("return") };
  }

  async subscribe(pattern, event, { onLost: lost, onGap: gap, onEnded: ended } = {}) {
    const [wish, subscription] = [this.#wish("events.subscribe", pattern, { pattern }), { event, lost, gap, ended }];
    wish.subscriptions.add(subscription);
    await wish.granted;
    const close = async () => {
      wish.subscriptions.delete(subscription);
      if (wish.subscriptions.size || !this.#wishes.delete(wish.key) || this.#state !== "open") return;
      await this.#ask("events.unsubscribe", { pattern }).catch((error) => isLost(error) || Promise.reject(error));
    };
    return { pattern, close };
  }

  serve(contract, handlers) {
    const wish = this.#wish("contracts.serve", contract, { contract, operations: Object.keys(handlers) });
    wish.handlers = handlers;
    return wish.granted;
  }

  close() {
    if (this.#state === "closed") return;
    this.#leave("closed", "the connection was closed");
    for (const question of [...this.#asked.values()]) question.settle(closed());
    for (const wish of [...this.#wishes.values()]) this.#end(wish, closed());
    this.#emit("close", { code: 1000, reason: "closed", retryInMs: null });
  }

  async #connect() {
    const connection = (this.#connection = {});
    const isCurrent = () => connection === this.#connection;
    const broken = (code, reason) => isCurrent() && this.#broken(code, reason);
    this.#state = "connecting";
    this.#timer = setTimeout(broken, CONNECT_MS, 0, "the gateway does not answer");
    try {
      const ticket = await this.#options.ticket?.();
      if (!isCurrent()) return;
      const query = ticket ? `?ticket=${encodeURIComponent(ticket)}` : "";
      const socket = (this.#socket = new this.#options.WebSocket(this.#address + query));
      socket.onopen = () => isCurrent() && this.#opened();
      socket.onmessage = ({ data }) => isCurrent() && this.#receive(JSON.parse(data));
      socket.onerror = () => broken(1006, ""); // Not everywhere does a close follow.
      socket.onclose = ({ code, reason }) => broken(code, reason);
    } catch (error) {
      if (isCurrent()) this.#emit("error", error);
      broken(0, String(error?.message ?? error));
    }
  }

  #opened() {
    clearTimeout(this.#timer);
    this.#state = "open";
    this.#openedAt = Date.now();
    for (const wish of this.#wishes.values()) this.#askFor(wish);
    for (const question of this.#asked.values()) if (!question.sent) question.send();
    this.#emit("open", { again: this.#wasOpen });
    this.#wasOpen = true;
  }

  #broken(code, reason) {
    const { minDelay, maxDelay } = this.#options;
    // A connection that ends at once counts as a failed attempt, too.
    this.#attempts = Date.now() - this.#openedAt > maxDelay ? 0 : this.#attempts + 1;
    const retryInMs = Math.round(Math.min(maxDelay, minDelay * 2 ** this.#attempts) * (0.5 + Math.random() / 2));
    this.#leave("waiting", "the connection broke");
    this.#timer = setTimeout(() => this.#connect(), retryInMs);
    this.#emit("close", { code, reason, retryInMs });
  }

  /** Ends what belongs to the connection. */
  #leave(state, why) {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#state = state;
    this.#connection = this.#socket = this.#openedAt = undefined;
    socket?.close(); // Which may tell of an error at once.
    for (const { sent, settle, method } of [...this.#asked.values()]) {
      if (sent) settle(lost(`${why}: it is unknown whether \`${method}\` was carried out`));
    }
    for (const controller of this.#inHand.values()) controller.abort(lost(why));
    for (const gone of [this.#inHand, this.#abandoned]) gone.clear();
  }

  #ask(method, params, { timeoutMs, provider, traceparent, signal } = {}) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#state === "closed") throw closed();
      const [id, isOpen] = [++this.#lastId, this.#state === "open"];
      const options = { "timeout-ms": timeoutMs || undefined, provider, traceparent };
      const weir = Object.values(options).some((option) => option) ? options : undefined;
      // As text at once, so that what JSON cannot say fails here.
      const text = JSON.stringify({ jsonrpc: "2.0", id, method, params, weir });
      const giveUp = () => {
        if (question.sent) this.#notify("rpc.cancel", { id });
        if (question.sent && method === "queues.take") this.#abandoned.add(id);
        settle(signal?.aborted ? signal.reason : new WeirError("timeout", `no answer to \`${method}\` in time`));
      };
      const timer = setTimeout(giveUp, (timeoutMs || WAIT_MS) + (isOpen ? GRACE_MS : 0));
      signal?.addEventListener("abort", giveUp);
      const settle = (error, result) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", giveUp);
        this.#asked.delete(id);
        error ? reject(error) : resolve(result);
      };
      const question = { method, settle, sent: false, send: () => ((question.sent = true), this.#socket.send(text)) };
      this.#asked.set(id, question);
      if (isOpen) question.send();
    });
  }

  #notify(method, params) {
    if (this.#state === "open") this.#socket.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  #wish(method, name, params) {
    if (this.#state === "closed") throw closed();
    const key = `${method} ${name}`;
    if (this.#wishes.has(key)) return this.#wishes.get(key);
    const wish = { key, method, params, subscriptions: new Set(), topics: new Map(), wasGranted: false };
    wish.granted = new Promise((grant, refuse) => Object.assign(wish, { grant, refuse }));
    this.#wishes.set(key, wish);
    if (this.#state === "open") this.#askFor(wish);
    return wish;
  }

  #askFor(wish) {
    const granted = () => {
      if (wish.wasGranted) this.#tell(wish, "gap", { pattern: wish.params.pattern });
      wish.wasGranted = true;
      wish.grant();
    };
    this.#ask(wish.method, wish.params).then(granted, (error) => isLost(error) || this.#end(wish, error));
  }

  #end(wish, error) {
    // A later wish may have its key.
    if (!wish || this.#wishes.get(wish.key) !== wish) return;
    this.#wishes.delete(wish.key);
    wish.refuse(error);
    if (wish.wasGranted) this.#tell(wish, "ended", error);
    if (wish.wasGranted && wish.handlers && !isLost(error)) this.#emit("error", error);
  }

  #receive({ id, method, params, result, error, weir }) {
    if (method) return id === undefined ? this.#hear(method, params) : this.#answer(id, method, params, weir);
    if (this.#abandoned.delete(id) && result) this.#notify("queues.return", { job: result.job });
    const { code = "failed", provider } = error?.data ?? {};
    this.#asked.get(id)?.settle(error && new WeirError(code, error.message, provider), result);
  }

  #hear(method, params) {
    const wish = this.#wishes.get(`events.subscribe ${params?.pattern}`);
    if (method === "rpc.cancel") this.#inHand.get(params.id)?.abort(new WeirError("cancelled", "nobody waits"));
    else if (method === "events.lost") this.#tell(wish, "lost", params.lost);
    else if (method === "events.ended") this.#end(wish, new WeirError("permission-denied", "the grant was taken back"));
    else if (method !== "events.event") this.#emit("notification", { method, params });
    else if (wish) this.#tell(this.#count(wish, params), "event", { ...params, payload: unpack(params.payload) });
  }

  /** The number of a topic's first event after a break says how many are missing, unless Main began anew. */
  #count(wish, { pattern, topic, sequence }) {
    const last = wish.topics.get(topic);
    wish.topics.delete(topic);
    wish.topics.set(topic, { sequence, connection: this.#connection });
    if (wish.topics.size > TOPICS_MAX) wish.topics.delete(wish.topics.keys().next().value);
    const missing = last && last.connection !== this.#connection ? sequence - last.sequence - 1 : 0;
    if (missing > 0) this.#tell(wish, "gap", { pattern, topic, lost: missing });
    return wish;
  }

  async #answer(id, method, params, { sender, "timeout-ms": timeoutMs, traceparent } = {}) {
    const [contract, operation] = method.split("/");
    const [connection, controller] = [this.#connection, new AbortController()];
    this.#inHand.set(id, controller);
    let answer;
    try {
      const { handlers } = this.#wishes.get(`contracts.serve ${contract}`);
      const result = await handlers[operation](unpack(params), { sender, timeoutMs, traceparent, signal: controller.signal });
      answer = JSON.stringify({ jsonrpc: "2.0", id, result: pack(result) ?? null });
    } catch (error) {
      const [message, code] = [String(error?.message ?? error), error instanceof WeirError ? error.code : "failed"];
      answer = JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32010, message, data: { code } } });
    }
    if (connection !== this.#connection) return;
    this.#inHand.delete(id);
    this.#socket.send(answer);
  }

  #tell(wish, what, value) {
    for (const subscription of wish?.subscriptions ?? []) run(subscription[what], value);
  }

  #emit(event, value) {
    for (const listener of this.#listeners[event]) run(listener, value);
  }
}

function run(listener, value) {
  try { listener?.(value); } catch (error) { console.error(error); } // A listener that fails stops no other.
}

const lost = (message) => new WeirError("connection-lost", message);
const closed = () => new WeirError("closed", "the client is closed");
const isLost = (error) => ["connection-lost", "closed"].includes(error?.code);

/** Bytes have a form of their own in JSON. */
function pack(value) {
  if (!(value instanceof Uint8Array)) return value;
  return { $base64: btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join("")) };
}

/** JSON has that form where it would not fit as it stands, too. */
function unpack(value) {
  const text = value && typeof value === "object" && Object.keys(value).length === 1 && value.$base64;
  if (typeof text !== "string") return value;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  try { return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)); } catch { return bytes; }
}

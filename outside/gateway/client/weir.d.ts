/** Anything that JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What travels: JSON, or bytes. `T` is for interfaces of your own, which TypeScript does not take for `Json`. */
export type Payload<T extends object = object> = Json | Uint8Array | T;

/** Why something failed. */
export class WeirError extends Error {
  constructor(code: string, message: string, provider?: boolean);
  /**
   * Weir's word, as `no-provider` or `timeout`, or the provider's own.
   *
   * Two words are of this client: `connection-lost`, where it is unknown whether something was carried out, and `closed`
   * after `close()`.
   */
  readonly code: string;
  /** Whether the provider itself said no. Then `code` is its own word. */
  readonly provider: boolean;
}

export interface WebSocketLike {
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  send(text: string): void;
  close(code?: number): void;
}

export interface Options {
  /** Gets a ticket, before each connection. A page asks its own server, which has the token. */
  ticket?: () => string | Promise<string>;
  /** The class to connect with, if it is not the global one. */
  WebSocket?: new (url: string) => WebSocketLike;
  /** Milliseconds before the first new attempt, about. Each one after it waits twice as long. Default 250. */
  minDelay?: number;
  /** The longest time between two attempts, in milliseconds. Default 15 000. */
  maxDelay?: number;
}

export interface AskOptions {
  /**
   * Milliseconds for the connection and the answer together. Without it, or with 0, the operator's deadline holds, and a minute here.
   * Then the error is `timeout`.
   */
  timeoutMs?: number;
  /** Gives up: the promise is rejected with the signal's reason, and the provider hears of it. */
  signal?: AbortSignal;
  /**
   * The span that this is part of: one of the program's own, or of a request or job that it handles. Main records what is
   * of the same trace as a recorded message in hand, and other spans by chance.
   */
  traceparent?: string;
}

export interface CallOptions extends AskOptions {
  /** The extension or peer to ask, if it is not the owner of the contract. */
  provider?: string;
}

export interface WeirEvent<P = unknown> {
  readonly pattern: string;
  readonly topic: string;
  /** The number of the event in its topic. */
  readonly sequence: number;
  /** Whether it is the last value of a topic that Main keeps, from before the subscription. */
  readonly retained: boolean;
  readonly sender: string;
  readonly payload: P;
}

/** After a break of the connection, events may be missing. */
export interface Gap {
  readonly pattern: string;
  /** Absent: told once after each break, when the subscription holds again. Read the state anew then. */
  readonly topic?: string;
  /**
   * With `topic`, which comes with its first event after the break: how many events of it are missing, as the numbers
   * say. Main began anew if they say nothing: then nobody knows how many.
   */
  readonly lost?: number;
}

export interface SubscribeOptions {
  /** So many events were lost before the next one: this program or its connection was too slow. */
  onLost?: (lost: number) => void;
  onGap?: (gap: Gap) => void;
  /** The subscription is over: the operator took back the grant, or the client was closed. */
  onEnded?: (why: WeirError) => void;
}

export interface Subscription {
  readonly pattern: string;
  close(): Promise<void>;
}

export interface Job<P = unknown> {
  readonly id: string;
  /** 1, or more if earlier readers did not finish it. */
  readonly deliveries: number;
  readonly sender: string;
  /** The span of this delivery, if Main records it. */
  readonly traceparent?: string;
  readonly payload: P;
  /** The job is done, and leaves its queue. A break of the connection before that gives it to another reader. */
  done(): Promise<void>;
  /** The job goes back to its queue. */
  return(): Promise<void>;
}

export interface Request {
  readonly sender: string;
  /** Milliseconds for the answer. */
  readonly timeoutMs?: number;
  /** Its span, if Main records it. */
  readonly traceparent?: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** Answers an operation. A `WeirError` that it throws gives the caller its code, anything else gives `failed`. */
export type Handler = (params: any, request: Request) => unknown;

export interface Events {
  /** A connection is there. `again`: it is not the first, so events may be missing. */
  open: { again: boolean };
  /** The connection broke, or an attempt failed. `retryInMs` is null after `close()`. */
  close: { code: number; reason: string; retryInMs: number | null };
  /** What no promise tells: the ticket could not be had, or a contract cannot be served again. */
  error: unknown;
  /** A message of the gateway for an alias of a topic. */
  notification: { method: string; params: unknown };
}

/** A peer's connection to Main. It connects at once, and again after each break, until `close()`. */
export class Weir {
  /** `url` as in `ws://127.0.0.1:7410`, `name` as in `app:page`. */
  constructor(url: string, name: string, options?: Options);
  readonly state: "connecting" | "open" | "waiting" | "closed";

  /** Returns a function that takes the listener away again. */
  on<E extends keyof Events>(event: E, listener: (value: Events[E]) => void): () => void;

  /**
   * Calls `CONTRACT/OPERATION`, or an alias. A call that is made without a connection waits for one. A call under way
   * when the connection breaks is rejected with `connection-lost`, and not repeated: it may have been carried out.
   */
  call<R = unknown>(method: string, params?: Payload, options?: CallOptions): Promise<R>;

  /** How many subscriptions have the event, how many lost one for want of room, and how many refused it. */
  publish(
    topic: string,
    payload?: Payload,
    options?: AskOptions & { to?: string },
  ): Promise<{ delivered: number; shed: number; refused: number }>;

  /** Puts a job in a queue. Gives `{ id }`, or null once a reader has finished it under `untilDone`. */
  put(queue: string, payload?: Payload, options?: AskOptions & { untilDone?: boolean }): Promise<{ id: string } | null>;

  /** Takes a job, or gives null if none came within `timeoutMs`: 30 seconds, if it is absent. */
  take<P = unknown>(queue: string, options?: AskOptions): Promise<Job<P> | null>;

  /**
   * Subscribes to topics, for all connections until `close()` of the result. Waits for a connection as long as it takes.
   * A second subscription of the same pattern shares the first one, and so gets no retained events.
   */
  subscribe<P = unknown>(
    pattern: string,
    listener: (event: WeirEvent<P>) => void,
    options?: SubscribeOptions,
  ): Promise<Subscription>;

  /** Serves a contract, on all connections. Waits for a connection as long as it takes. */
  serve(contract: string, handlers: { [operation: string]: Handler }): Promise<void>;

  /** Ends the connection and all that waits. There is no new one. */
  close(): void;
}

// What Main gives an extension: the bindings of `weir:iec` and WASI in a component, a fake of Main in a test.
//
// Its functions are those of `wit/iec.wit`, and throw as the bindings do: an error with a `payload`.

import type { HandlerError, WireError } from "./error.js";

export type MessageId = bigint;

export interface Request {
  id: MessageId;
  sender: number;
  operation: number;
  remainingMs: number;
  waitedUs: number;
  payload: Uint8Array;
}

export interface Response {
  id: MessageId;
  outcome: { tag: "ok"; val: Uint8Array } | { tag: "err"; val: WireError };
}

export interface WireEvent {
  sender: number;
  subscription: number;
  topic?: string | undefined;
  sequence: bigint;
  lost: bigint;
  retained: boolean;
  waitedUs: number;
  payload: Uint8Array;
}

export interface WireJob {
  id: MessageId;
  queue: number;
  sender: number;
  deliveries: number;
  waitedUs: number;
  payload: Uint8Array;
}

export type Message =
  | { tag: "request"; val: Request }
  | { tag: "response"; val: Response }
  | { tag: "event"; val: WireEvent }
  | { tag: "job"; val: WireJob };

export type Answer = { tag: "ok"; val: Uint8Array } | { tag: "err"; val: HandlerError };

export interface Options {
  timeoutMs?: number | undefined;
  parent?: MessageId | undefined;
}

/** Counts of the subscriptions that an event reached or missed. */
export interface Receipt {
  /** Subscriptions with the event in their inbox. */
  delivered: number;
  /** Events lost because an inbox was full: this one, or older ones in its place. */
  shed: number;
  /** Full subscriptions that refused it, or for which the publisher waited in vain. */
  refused: number;
}

export type Level = "trace" | "debug" | "info" | "warn" | "error";

export interface Host {
  serve(contract: string, operations: string[]): number;
  /** Takes what is there. Empty means stop. */
  receiveBatch(max: number, order: "in-order" | "any-order", timeoutMs: number | undefined): Message[];
  respond(request: MessageId, answer: Answer): void;

  open(contract: string, operation: string, provider: string | undefined): number;
  call(target: number, payload: Uint8Array, options: Options): Uint8Array | Promise<Uint8Array>;
  send(target: number, payload: Uint8Array, options: Options): MessageId;
  cancel(request: MessageId): void;

  subscribe(pattern: string): number;
  unsubscribe(subscription: number): void;
  publish(topic: string, payload: Uint8Array, options: Options): Receipt;
  publishTo(extension: string, topic: string, payload: Uint8Array, options: Options): Receipt;

  openQueue(queue: string): number;
  put(queue: number, payload: Uint8Array, options: Options): MessageId;
  take(queue: number, how: { tag: "next"; val: number }): void;
  done(job: MessageId): void;
  giveBack(job: MessageId): void;

  ready(): void;
  interrupted(reason: string): void;
  error(reason: string): void;
  ownName(): string;
  nameOf(peer: number): string | undefined;
  log(level: Level, message: string, fields: { name: string; value: string }[]): void;
  config(key: string): string | undefined;
  env(name: string): string | undefined;
  exit(code: number): never;
  files: FileSystem;

  /** Milliseconds of a clock that never goes back. */
  now(): number;
  /** Resolves when no promise has anything left to run. */
  settled(): Promise<void>;
  /** Waits for the inbox, if it is to, or until that time of the clock. Returns whether something may be in the inbox. */
  wait(inbox: boolean, until: number | undefined): boolean | Promise<boolean>;
  /** Ends a wait. Nothing calls it in a component, where nothing else runs during a wait. */
  wake?(): void;
}

/** Files below the directories that the operator granted. */
export interface FileSystem {
  read(path: string): Uint8Array;
  write(path: string, content: Uint8Array): void;
  list(path: string): string[];
  remove(path: string): void;
}

let current: Host | undefined;

/** Names the host for functions without a context, such as those of the log. */
export function setHost(host: Host): void {
  current = host;
}

export function currentHost(): Host | undefined {
  return current;
}

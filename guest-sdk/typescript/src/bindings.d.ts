// What the bindings of the component give, as far as the SDK uses it: `wit/iec.wit` documents each function.

declare module "weir:iec/channel@0.1.0" {
  import type { Answer, Message, MessageId } from "./host.js";
  export function serve(contract: string, operations: string[]): number;
  export function receiveBatch(max: number, order: "in-order" | "any-order", timeoutMs: number | undefined): Message[];
  export function respond(request: MessageId, answer: Answer): void;
  export function subscribeInbox(): import("wasi:io/poll@0.2.12").Pollable;
}

declare module "weir:iec/requests@0.1.0" {
  import type { MessageId, Options } from "./host.js";
  export function open(contract: string, operation: string, provider: string | undefined): number;
  export function call(target: number, payload: Uint8Array, options: Options): Uint8Array;
  export function send(target: number, payload: Uint8Array, options: Options): MessageId;
  export function cancel(request: MessageId): void;
}

declare module "weir:iec/events@0.1.0" {
  import type { Options, Receipt } from "./host.js";
  export function subscribe(pattern: string): number;
  export function unsubscribe(subscription: number): void;
  export function publish(topic: string, payload: Uint8Array, options: Options): Receipt;
  export function publishTo(extension: string, topic: string, payload: Uint8Array, options: Options): Receipt;
}

declare module "weir:iec/queues@0.1.0" {
  import type { MessageId, Options } from "./host.js";
  export function open(queue: string): number;
  export function put(queue: number, payload: Uint8Array, options: Options): MessageId;
  export function take(queue: number, how: { tag: "one-by-one" } | { tag: "next"; val: number }): void;
  export function done(job: MessageId): void;
  export function giveBack(job: MessageId): void;
}

declare module "weir:iec/lifecycle@0.1.0" {
  export function ready(): void;
  export function interrupted(reason: string): void;
  export function error(reason: string): void;
}

declare module "weir:iec/peers@0.1.0" {
  export function ownName(): string;
  export function nameOf(peer: number): string | undefined;
}

declare module "weir:iec/log@0.1.0" {
  import type { Level } from "./host.js";
  export function write(level: Level, message: string, fields: { name: string; value: string }[]): void;
}

declare module "wasi:config/store@0.2.0-rc.1" {
  export function get(key: string): string | undefined;
}

declare module "wasi:cli/environment@0.2.12" {
  export function getEnvironment(): [string, string][];
}

declare module "wasi:cli/exit@0.2.12" {
  export function exitWithCode(code: number): void;
}

declare module "wasi:clocks/monotonic-clock@0.2.12" {
  export function now(): bigint;
  export function subscribeInstant(when: bigint): import("wasi:io/poll@0.2.12").Pollable;
}

declare module "wasi:io/poll@0.2.12" {
  export interface Pollable {
    [Symbol.dispose](): void;
  }
  export function poll(pollables: Pollable[]): Uint32Array;
}

declare module "wasi:filesystem/preopens@0.2.12" {
  export function getDirectories(): [import("wasi:filesystem/types@0.2.12").Descriptor, string][];
}

declare module "wasi:filesystem/types@0.2.12" {
  export interface Descriptor {
    openAt(
      path: { symlinkFollow?: boolean },
      name: string,
      open: { create?: boolean; truncate?: boolean; directory?: boolean },
      flags: { read?: boolean; write?: boolean },
    ): Descriptor;
    read(length: bigint, offset: bigint): [Uint8Array, boolean];
    write(buffer: Uint8Array, offset: bigint): bigint;
    readDirectory(): { readDirectoryEntry(): { name: string } | undefined; [Symbol.dispose](): void };
    unlinkFileAt(name: string): void;
    [Symbol.dispose](): void;
  }
}

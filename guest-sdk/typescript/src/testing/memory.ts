// Main in memory, for tests: one extension, fakes of the contracts that it calls, and its manifest as its grants.

import { WeirError, type WireError } from "../error.js";
import type { Answer, FileSystem, Host, Level, Message, MessageId, Options, Receipt } from "../host.js";
import type { ManifestSection } from "../manifest.js";
import { covers } from "../names.js";
import { Timers } from "../timers.js";
import { denied, Queues, wire } from "./queues.js";

/** The deadline of requests, calls and fakes, without another: Main's default. */
const TIMEOUT_MS = 5000;

/** A published event. */
export interface Published {
  topic: string;
  /** The one extension that it was meant for. None: all subscribers. */
  to?: string;
  payload: Uint8Array;
}

/** A line of the log. */
export interface Line {
  level: Level;
  message: string;
  fields: Record<string, string>;
}

export type Fake = (payload: Uint8Array) => Promise<Uint8Array>;

interface Asked {
  deadline: number;
  answer?: Answer | { tag: "wire"; val: WireError };
  answered?: () => void;
}

export class Memory implements Host {
  readonly timers = new Timers();
  readonly fakes = new Map<string, Fake>();
  readonly values = new Map<string, string>();
  readonly variables = new Map<string, string>();
  readonly content = new Map<string, Uint8Array>();
  readonly lines: Line[] = [];
  readonly retained = new Map<string, Uint8Array>();
  published: Published[] = [];
  isReady = false;
  interruption: string | undefined;
  /** Why the extension says that it is about to fail. */
  failure: string | undefined;
  messageSize = 1024 * 1024;
  hasStopped = false;
  private time = 0;
  private lastId = 0n;
  private stopping: "no" | "asked" | "told" = "no";
  private readonly senders = ["main", "test"];
  private readonly served: string[] = [];
  private readonly targets: string[] = [];
  private readonly patterns: (string | undefined)[] = [];
  private readonly sequences = new Map<string, bigint>();
  readonly queues: Queues;
  private readonly asked = new Map<MessageId, Asked>();
  private readonly underWay = new Set<MessageId>();
  private readonly responses: Message[] = [];
  private readonly others: Message[] = [];
  private waiting: { until: number | undefined; end: () => void } | undefined;
  /** Waits of the test for what the extension does. Time jumps for them. */
  private hurries = 0;

  constructor(private readonly manifest: ManifestSection) {
    this.queues = new Queues(manifest);
  }

  // The extension's side.

  serve(contract: string, operations: string[]): number {
    if (!this.manifest.fulfills.includes(contract)) throw denied(`contract \`${contract}\``, "fulfills");
    return this.served.push(...operations.map((operation) => `${contract} ${operation}`)) - operations.length;
  }

  receiveBatch(max: number): Message[] {
    if (this.stopping === "asked") {
      this.stopping = "told";
      return [];
    }
    const messages = this.responses.splice(0, max);
    if (this.stopping === "told") {
      if (messages.length === 0 && this.underWay.size > 0) throw wire({ tag: "timeout" });
      return messages;
    }
    messages.push(...this.others.splice(0, max - messages.length), ...this.queues.deliver());
    if (messages.length === 0) throw wire({ tag: "timeout" });
    return messages;
  }

  respond(request: MessageId, answer: Answer): void {
    if (answer.tag === "ok") this.checkSize(answer.val);
    const asked = this.asked.get(request);
    if (asked === undefined) throw wire({ tag: "invalid", val: `request ${request} was never received` });
    if (asked.answer?.tag === "wire") return;
    if (asked.answer !== undefined) throw wire({ tag: "invalid", val: `request ${request} is answered already` });
    asked.answer = answer;
    asked.answered?.();
  }

  open(contract: string, operation: string): number {
    const { requires, wants } = this.manifest;
    if (![...requires, ...wants].includes(contract)) throw denied(`contract \`${contract}\``, "wants");
    if (!this.fakes.has(`${contract} ${operation}`))
      throw wire({ tag: "unknown-contract", val: `${contract}: the test has no fake of \`${operation}\`` });
    const place = this.targets.indexOf(`${contract} ${operation}`);
    return place >= 0 ? place : this.targets.push(`${contract} ${operation}`) - 1;
  }

  async call(target: number, payload: Uint8Array, options: Options): Promise<Uint8Array> {
    const fake = this.fakes.get(this.targets[target] ?? "")!;
    return new Promise((resolve, reject) => {
      const timer = this.timers.at(this.endOf(options), () => reject(wire({ tag: "timeout" })));
      this.wake();
      fake(payload)
        .then(resolve, (error: unknown) => reject(wire(asWire(error))))
        .finally(() => this.timers.cancel(timer));
    });
  }

  send(target: number, payload: Uint8Array, options: Options): MessageId {
    this.checkSize(payload);
    const id = ++this.lastId;
    this.underWay.add(id);
    const end = (outcome: { tag: "ok"; val: Uint8Array } | { tag: "err"; val: WireError }) => {
      if (this.underWay.delete(id)) this.responses.push({ tag: "response", val: { id, outcome } });
      this.wake();
    };
    this.call(target, payload, options).then(
      (val) => end({ tag: "ok", val }),
      (error: unknown) => end({ tag: "err", val: (error as { payload: WireError }).payload }),
    );
    return id;
  }

  cancel(request: MessageId): void {
    this.underWay.delete(request);
  }

  subscribe(pattern: string): number {
    if (!this.manifest.subscribes.some((granted) => covers(granted, pattern)))
      throw denied(`topic \`${pattern}\``, "subscribes");
    const known = this.patterns.indexOf(pattern);
    if (known >= 0) return known;
    const subscription = this.patterns.push(pattern) - 1;
    for (const [topic, payload] of this.retained) {
      if (covers(pattern, topic)) this.deliver(subscription, topic, payload, 0, 0n, true);
    }
    return subscription;
  }

  unsubscribe(subscription: number): void {
    if (this.patterns[subscription] === undefined)
      throw wire({ tag: "invalid", val: `no subscription has the number ${subscription}` });
    this.patterns[subscription] = undefined;
  }

  publish(topic: string, payload: Uint8Array): Receipt {
    this.checkPublish(topic, payload);
    this.published.push({ topic, payload });
    return { delivered: this.spread(topic, payload, 2, 0n), shed: 0, refused: 0 };
  }

  publishTo(to: string, topic: string, payload: Uint8Array): Receipt {
    this.checkPublish(topic, payload);
    this.published.push({ topic, to, payload });
    return { delivered: 1, shed: 0, refused: 0 };
  }

  openQueue(queue: string): number {
    return this.queues.open(queue);
  }

  put(queue: number, payload: Uint8Array): MessageId {
    this.checkSize(payload);
    return this.enqueue(this.queues.name(queue), payload, 2);
  }

  take(queue: number, { val }: { tag: "next"; val: number }): void {
    this.queues.take(queue, val);
    this.wake();
  }

  done(job: MessageId): void {
    this.queues.done(job);
  }

  giveBack(job: MessageId): void {
    this.queues.giveBack(job);
    this.wake();
  }

  ready(): void {
    this.isReady = true;
    this.interruption = undefined;
  }

  interrupted(reason: string): void {
    this.interruption = reason;
  }

  error(reason: string): void {
    this.failure ??= reason;
  }

  ownName(): string {
    return this.manifest.id;
  }

  nameOf(peer: number): string | undefined {
    return peer === 2 ? this.manifest.id : this.senders[peer > 2 ? peer - 1 : peer];
  }

  log(level: Level, message: string, fields: { name: string; value: string }[]): void {
    this.lines.push({ level, message, fields: Object.fromEntries(fields.map(({ name, value }) => [name, value])) });
  }

  config(key: string): string | undefined {
    return this.values.get(key);
  }

  env(name: string): string | undefined {
    return this.variables.get(name);
  }

  exit(code: number): never {
    throw new Error(`the extension has exited with the code ${code}`);
  }

  readonly files: FileSystem = {
    read: (path) => this.content.get(path) ?? missing(path),
    write: (path, content) => {
      const dir = this.manifest.grants.dirs.find(({ guest }) => path.startsWith(`${guest}/`));
      if (dir?.mode !== "rw") throw asIo(path, dir === undefined ? "in no directory of the manifest" : "read only");
      this.content.set(path, content.slice());
    },
    list: (path) => [
      ...new Set(
        [...this.content.keys()]
          .filter((file) => file.startsWith(`${path}/`))
          .map((file) => file.slice(path.length + 1).split("/")[0]!),
      ),
    ],
    remove: (path) => {
      if (!this.content.delete(path)) missing(path);
    },
  };

  now(): number {
    return this.time;
  }

  settled(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  wait(listens: boolean, until: number | undefined): Promise<boolean> {
    const arrived =
      this.responses.length > 0 ||
      this.stopping === "asked" ||
      (this.stopping === "told" ? this.underWay.size === 0 : this.others.length > 0 || this.queues.hasJobs());
    if ((listens && arrived) || (until !== undefined && until <= this.time)) return Promise.resolve(true);
    return new Promise((end) => {
      this.waiting = { until, end: () => end(true) };
      if (this.hurries > 0) void this.jump(this.waiting);
    });
  }

  wake(): void {
    const { waiting } = this;
    this.waiting = undefined;
    waiting?.end();
  }

  // The test's side.

  /** Asks the extension. The promise is the answer, or throws what the caller would get. */
  ask(
    contract: string,
    operation: string,
    payload: Uint8Array,
    timeoutMs: number = TIMEOUT_MS,
  ): { answer: Promise<Uint8Array>; isAnswered: () => boolean } {
    const number = this.served.indexOf(`${contract} ${operation}`);
    if (this.hasStopped) throw new WeirError({ tag: "no-provider", val: this.manifest.id });
    if (number < 0) throw new WeirError({ tag: "invalid", val: `\`${contract}\` has no operation \`${operation}\`` });
    if (this.interruption !== undefined) throw new WeirError({ tag: "not-ready", val: this.interruption });
    const id = ++this.lastId;
    const asked: Asked = { deadline: this.time + timeoutMs };
    this.asked.set(id, asked);
    const answer = new Promise<Uint8Array>((resolve, reject) => {
      asked.answered = () => {
        this.timers.cancel(timer);
        if (asked.answer?.tag === "ok") resolve(asked.answer.val);
        else if (asked.answer?.tag === "err") reject(wire({ tag: "handler", val: asked.answer.val }));
        else reject(wire(asked.answer!.val));
      };
      const timer = this.timers.at(asked.deadline, () => {
        asked.answer = { tag: "wire", val: { tag: "timeout" } };
        asked.answered!();
      });
    });
    answer.catch(() => {});
    this.others.push({
      tag: "request",
      val: { id, sender: this.sender(), operation: number, remainingMs: timeoutMs, waitedUs: 0, payload },
    });
    this.wake();
    return { answer, isAnswered: () => asked.answer !== undefined };
  }

  /** Publishes an event of the test. Returns the number of subscriptions that it reached. */
  spread(topic: string, payload: Uint8Array, sender: number, lost: bigint): number {
    const matching = [...this.patterns.entries()].filter(
      ([, pattern]) => pattern !== undefined && covers(pattern, topic),
    );
    this.sequences.set(topic, (this.sequences.get(topic) ?? 0n) + 1n);
    for (const [subscription] of matching) this.deliver(subscription, topic, payload, sender, lost, false);
    return matching.length;
  }

  enqueue(queue: string, payload: Uint8Array, sender: number): MessageId {
    const id = ++this.lastId;
    this.queues.put(id, queue, payload, sender);
    this.wake();
    return id;
  }

  /** The number of the sender under which the test speaks. */
  sender(): number {
    return this.senders.length === 2 ? 1 : this.senders.length;
  }

  setSender(name: string): void {
    this.senders.push(name);
  }

  stop(): void {
    this.stopping = "asked";
    this.wake();
  }

  /** The extension has ended: nobody answers any more. */
  gone(): void {
    this.hasStopped = true;
    for (const asked of this.asked.values()) {
      if (asked.answer !== undefined) continue;
      asked.answer = { tag: "wire", val: { tag: "peer-gone" } };
      asked.answered?.();
    }
  }

  callsUnderWay(): number {
    return this.underWay.size;
  }

  /** Time jumps until the promise is there, whenever the extension waits. */
  async hurry<T>(promise: Promise<T>): Promise<T> {
    this.hurries += 1;
    if (this.waiting !== undefined) void this.jump(this.waiting);
    try {
      return await promise;
    } finally {
      this.hurries -= 1;
    }
  }

  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    for (;;) {
      await this.idle();
      const next = this.nextTime();
      if (next === undefined || next > end) break;
      this.jumpTo(next);
    }
    this.jumpTo(end);
    await this.idle();
  }

  /** Lets the extension and the fakes run until they wait. */
  async idle(): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      await this.settled();
      quiet = this.waiting === undefined && !this.hasStopped ? 0 : quiet + 1;
    }
  }

  /** If the extension still waits when everything is quiet, only time can end that. */
  private async jump(waiting: object): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet += 1) await this.settled();
    if (this.waiting !== waiting || this.hurries === 0) return;
    const next = this.nextTime();
    if (next !== undefined) this.jumpTo(next);
  }

  private nextTime(): number | undefined {
    const times = [this.waiting?.until, this.timers.next()].filter((time) => time !== undefined);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  private jumpTo(time: number): void {
    this.time = Math.max(this.time, time);
    const due = this.waiting?.until !== undefined && this.waiting.until <= this.time;
    if (this.timers.fire(this.time) || due) this.wake();
  }

  private deliver(
    subscription: number,
    topic: string,
    payload: Uint8Array,
    sender: number,
    lost: bigint,
    retained: boolean,
  ): void {
    const single = this.patterns[subscription] === topic;
    const sequence = this.sequences.get(topic) ?? 1n;
    const val = {
      sender,
      subscription,
      topic: single ? undefined : topic,
      sequence,
      lost,
      retained,
      waitedUs: 0,
      payload,
    };
    this.others.push({ tag: "event", val });
    this.wake();
  }

  private endOf({ timeoutMs = TIMEOUT_MS, parent }: Options): number {
    const deadline = parent === undefined ? undefined : this.asked.get(parent)?.deadline;
    return Math.min(this.time + timeoutMs, deadline ?? Infinity);
  }

  private checkPublish(topic: string, payload: Uint8Array): void {
    if (!this.manifest.publishes.some((granted) => covers(granted, topic)))
      throw denied(`topic \`${topic}\``, "publishes");
    this.checkSize(payload);
  }

  private checkSize({ length }: Uint8Array): void {
    if (length > this.messageSize)
      throw wire({ tag: "too-large", val: { bytes: BigInt(length), allowed: BigInt(this.messageSize) } });
  }
}

function asWire(thrown: unknown): WireError {
  if (thrown instanceof WeirError) return thrown.wire;
  return { tag: "handler", val: { code: "unexpected", message: `the fake failed: ${String(thrown)}` } };
}

function asIo(path: string, what: string): WeirError {
  return new WeirError({ tag: "handler", val: { code: "io", message: `${path}: ${what}` } });
}

function missing(path: string): never {
  throw asIo(path, "no entry");
}

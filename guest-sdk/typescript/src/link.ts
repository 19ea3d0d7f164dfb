// What an extension shares with all its handlers: Main, the targets that it has looked up, and its requests under way.

import { WeirError, fromImport, fromWire, imported, invalid } from "./error.js";
import type { Host, MessageId, Options, Response } from "./host.js";
import { Jobs } from "./jobs.js";
import { Timers } from "./timers.js";

/** A request under way. */
export interface UnderWay {
  id: MessageId;
  answer: Promise<Uint8Array>;
}

interface Waiting {
  resolve(payload: Uint8Array): void;
  reject(error: unknown): void;
}

export class Link {
  readonly timers = new Timers();
  readonly jobs: Jobs;
  /** Only then can an answer come through the inbox. */
  receiving = false;
  private readonly targets = new Map<string, number>();
  private readonly queues = new Map<string, number>();
  private readonly underWay = new Map<MessageId, Waiting>();
  private readonly patterns = new Map<number, string>();

  constructor(readonly host: Host) {
    this.jobs = new Jobs(this);
  }

  /** Sends a request. Throws if it cannot be sent. */
  send(
    contract: string,
    operation: string,
    provider: string | undefined,
    payload: Uint8Array,
    options: Options,
  ): UnderWay {
    const target = this.target(contract, operation, provider);
    const id = imported(() => this.host.send(target, payload, options));
    const answer = new Promise<Uint8Array>((resolve, reject) => this.underWay.set(id, { resolve, reject }));
    // A program that gave up on an answer need not hear of its error.
    answer.catch(() => {});
    return { id, answer };
  }

  /** Calls, and nothing else runs meanwhile: while no answer can come through the inbox. */
  async callAlone(
    contract: string,
    operation: string,
    provider: string | undefined,
    payload: Uint8Array,
    options: Options,
  ): Promise<Uint8Array> {
    const target = this.target(contract, operation, provider);
    try {
      return await this.host.call(target, payload, options);
    } catch (thrown) {
      throw fromImport(thrown);
    }
  }

  cancel(id: MessageId, reason: unknown): void {
    const waiting = this.underWay.get(id);
    if (waiting === undefined) return;
    this.underWay.delete(id);
    this.host.cancel(id);
    waiting.reject(reason);
  }

  answered({ id, outcome }: Response): void {
    const waiting = this.underWay.get(id);
    // None: the caller gave up while the answer was in the inbox.
    if (waiting === undefined) return;
    this.underWay.delete(id);
    if (outcome.tag === "ok") waiting.resolve(outcome.val);
    else waiting.reject(fromWire(outcome.val));
  }

  awaitsAnswers(): boolean {
    return this.underWay.size > 0;
  }

  /** No answer comes through the inbox any more: waiting callers fail. */
  stopReceiving(): void {
    this.receiving = false;
    for (const waiting of this.underWay.values()) waiting.reject(new WeirError({ tag: "peer-gone" }));
    this.underWay.clear();
  }

  /** Subscribes, and keeps the pattern for events that leave out their topic. */
  subscribe(pattern: string): number {
    const subscription = imported(() => this.host.subscribe(pattern));
    this.patterns.set(subscription, pattern);
    return subscription;
  }

  unsubscribe(pattern: string): void {
    const subscription = [...this.patterns].find(([, known]) => known === pattern)?.[0];
    if (subscription === undefined) throw invalid(`there is no subscription to \`${pattern}\``);
    this.patterns.delete(subscription);
    imported(() => this.host.unsubscribe(subscription));
  }

  /** The topic of an event without one: the single topic of its subscription. */
  topicOf(subscription: number): string {
    return this.patterns.get(subscription) ?? "";
  }

  queue(name: string): number {
    let number = this.queues.get(name);
    if (number === undefined) this.queues.set(name, (number = imported(() => this.host.openQueue(name))));
    return number;
  }

  private target(contract: string, operation: string, provider: string | undefined): number {
    const key = `${contract} ${operation} ${provider ?? ""}`;
    let number = this.targets.get(key);
    if (number === undefined)
      this.targets.set(key, (number = imported(() => this.host.open(contract, operation, provider))));
    return number;
  }
}

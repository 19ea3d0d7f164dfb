/**
 * An extension without Main: {@link Harness} plays Main in memory, for `node --test`.
 *
 * @module
 */

import { json, received, type Operation, type Queue, Topic } from "../contract.js";
import { fromImport } from "../error.js";
import type { Extension } from "../extension.js";
import { setHost } from "../host.js";
import { Server } from "../serve.js";
import { Memory, type Line } from "./memory.js";
import type { JobState } from "./queues.js";

export type { Line } from "./memory.js";
export type { JobState } from "./queues.js";

/** An event that the extension published. */
export interface PublishedEvent {
  topic: string;
  /** The one extension that it was meant for. None: all subscribers. */
  to?: string;
  payload: Uint8Array;
  /** The payload as JSON. */
  json(): any;
}

/** A request under way. */
export interface Pending<R> {
  readonly isAnswered: boolean;
  /** Waits for the answer. Throws as {@link Harness.call}. */
  wait(): Promise<R>;
}

/**
 * Runs an extension in memory and plays everything around it: callers, owners of the contracts that it calls, publishers and
 * subscribers.
 *
 * The manifest is the grants: a contract or topic that it lacks is refused as Main would refuse it. The harness has its own
 * time, which passes only when everything waits for it. So a test of a timeout takes no time. Timers of Node are not part of
 * it: wait with `context.sleep`, and in fakes with {@link sleep}.
 */
export class Harness {
  private readonly memory: Memory;
  private readonly server: Server;
  private running: Promise<void> | undefined;
  private outcome: { error?: unknown } | undefined;
  private lost = 0n;

  /** An extension that starts at the first call, event or job. Throws if the manifest does not fit the handlers. */
  constructor(extension: Extension) {
    const { manifest } = extension.sections({ id: "extension", version: "0.0.0" });
    this.memory = new Memory(manifest);
    this.server = new Server(this.memory, extension);
    setHost(this.memory);
  }

  /** Answers an operation in place of its owner. The fake may wait, and may throw any {@link WeirError}, as Main or the owner would. */
  fake<A, R>(operation: Operation<A, R>, answer: (args: A) => R | Promise<R>): void {
    this.memory.fakes.set(`${operation.contract} ${operation.name}`, async (payload) =>
      operation.result.encode(await answer(received(operation.args, payload, "invalid-argument"))),
    );
  }

  /** As {@link fake}, with names and bytes. */
  fakeBytes(
    contract: string,
    operation: string,
    answer: (payload: Uint8Array) => Uint8Array | Promise<Uint8Array>,
  ): void {
    this.memory.fakes.set(`${contract} ${operation}`, async (payload) => answer(payload));
  }

  /** Sets a value of the extension's `config` table. */
  config(key: string, value: string): void {
    this.memory.values.set(key, value);
  }

  /** Sets a variable of the extension's environment. */
  env(name: string, value: string): void {
    this.memory.variables.set(name, value);
  }

  /** The files that the extension finds, by path. */
  get files(): Map<string, Uint8Array> {
    return this.memory.content;
  }

  /** Sets the extension's `message-size`: larger answers, arguments and events are refused. */
  messageSize(bytes: number): void {
    this.memory.messageSize = bytes;
  }

  /** The name under which the test calls and publishes from now on. The first is `test`. */
  sender(name: string): void {
    this.memory.setSender(name);
  }

  /** Starts the extension and waits until it is ready. The first call or event does so, too. Throws what the extension ends with. */
  async start(): Promise<void> {
    this.running ??= this.server.run().then(
      () => this.end({}),
      (error: unknown) => this.end({ error }),
    );
    const isReady = async () => {
      while (!this.memory.isReady && this.outcome === undefined) await this.memory.settled();
    };
    await this.memory.hurry(isReady());
    if (this.outcome !== undefined && "error" in this.outcome) throw this.outcome.error;
  }

  /** Calls the extension and waits for its answer, at most 5 s of the harness's time. Throws a {@link WeirError}. */
  async call<A, R>(operation: Operation<A, R>, args: A): Promise<R> {
    return (await this.send(operation, args)).wait();
  }

  /** Calls the extension without waiting. */
  async send<A, R>(
    operation: Operation<A, R>,
    args: A,
    { timeoutMs }: { timeoutMs?: number } = {},
  ): Promise<Pending<R>> {
    const pending = await this.sendBytes(operation.contract, operation.name, operation.args.encode(args), timeoutMs);
    return {
      get isAnswered() {
        return pending.isAnswered;
      },
      wait: async () => received(operation.result, await pending.wait(), "invalid-answer"),
    };
  }

  /** As {@link send}, with names and bytes. */
  async sendBytes(
    contract: string,
    operation: string,
    payload: Uint8Array,
    timeoutMs?: number,
  ): Promise<Pending<Uint8Array>> {
    await this.start();
    const { answer, isAnswered } = this.memory.ask(contract, operation, payload, timeoutMs);
    await this.memory.idle();
    return {
      get isAnswered() {
        return isAnswered();
      },
      wait: async () => {
        try {
          return await this.memory.hurry(answer);
        } catch (thrown) {
          throw fromImport(thrown);
        }
      },
    };
  }

  /** Publishes an event, and lets it be handled. Returns the number of the extension's subscriptions that it reached. */
  async publish<T>(topic: Topic<T> | string, value: T): Promise<number> {
    const payload = topic instanceof Topic ? topic.codec.encode(value) : json<T>().encode(value);
    await this.start();
    const reached = this.memory.spread(String(topic), payload, this.memory.sender(), this.lost);
    this.lost = 0n;
    await this.memory.idle();
    return reached;
  }

  /** Has Main retain a topic, with this as its last value. A new subscription gets it first. */
  retain<T>(topic: Topic<T> | string, value: T): void {
    this.memory.retained.set(
      String(topic),
      topic instanceof Topic ? topic.codec.encode(value) : json<T>().encode(value),
    );
  }

  /** Makes the next event arrive as if this many before it had been lost. */
  lose(events: bigint | number): void {
    this.lost = BigInt(events);
  }

  /** The events that the extension has published since the last call of this. */
  published(): PublishedEvent[] {
    const published = this.memory.published.map((event) => ({
      ...event,
      json: () => JSON.parse(new TextDecoder().decode(event.payload)),
    }));
    this.memory.published = [];
    return published;
  }

  /** Puts a job, and lets it be handled. Returns its id. */
  async put<T>(queue: Queue<T>, job: T): Promise<bigint> {
    await this.start();
    const id = this.memory.enqueue(queue.name, queue.codec.encode(job), this.memory.sender());
    await this.memory.idle();
    return id;
  }

  job(id: bigint): JobState {
    return this.memory.queues.state(id);
  }

  /** The lines that the extension has logged. */
  get logged(): Line[] {
    return this.memory.lines;
  }

  /** Why the extension has declared itself interrupted. */
  get interrupted(): string | undefined {
    return this.memory.interruption;
  }

  /** The number of calls to fakes without an answer. */
  get callsUnderWay(): number {
    return this.memory.callsUnderWay();
  }

  /** Milliseconds since the harness was made, in its own time. */
  get now(): number {
    return this.memory.now();
  }

  /** Waits in a fake before it answers. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.memory.timers.at(this.memory.now() + ms, resolve));
  }

  /** Lets time pass. */
  async advance(ms: number): Promise<void> {
    await this.start();
    await this.memory.advance(ms);
  }

  /** Tells the extension to stop, and waits until it has stopped. Throws what the extension ends with. */
  async stop(): Promise<void> {
    await this.start();
    this.memory.stop();
    await this.memory.hurry(this.running!);
    if (this.outcome !== undefined && "error" in this.outcome) throw this.outcome.error;
  }

  private end(outcome: { error?: unknown }): void {
    this.outcome = outcome;
    this.memory.gone();
  }
}

// What a handler can reach: other contracts, topics, queues, its caller, time and configuration.

import { bytes, json, received, type Codec, type Operation, type Queue, Topic } from "./contract.js";
import { WeirError, forLog, imported, timedOut } from "./error.js";
import type { MessageId, Options, Receipt, WireJob } from "./host.js";
import type { Link } from "./link.js";
import { log } from "./log.js";
import type { Timer } from "./timers.js";

/** How long an operation may take: whole milliseconds, from 1. Default: the operator's. */
export interface Timeout {
  timeoutMs?: number;
}

/** Options of a call. */
export interface CallOptions extends Timeout {
  /** This extension, or `main`, even if another owns the contract. */
  provider?: string;
  /** Cancels the call when it aborts. */
  signal?: AbortSignal;
}

/** Options of {@link Context.take}: how long to wait, in milliseconds. */
export interface TakeOptions extends Timeout {
  /** Ends the wait when it aborts. */
  signal?: AbortSignal;
}

/** A request under way. */
export interface Sent<R> {
  /** The answer, or why there is none. */
  readonly answer: Promise<R>;
  /** Gives up the request: its answer is an `AbortError`. */
  cancel(): void;
}

/** A job in hand. If neither of its functions is called before the handler that took it ends, it is given back. */
export interface Job<T> {
  readonly payload: T;
  readonly id: bigint;
  /** The sender: an extension, a peer, or `main`. */
  readonly sender: string | undefined;
  /** Deliveries so far, this one included. Over 1, an earlier reader did not finish the job. */
  readonly deliveries: number;
  /** Finishes the job: no reader gets it again. */
  done(): void;
  /** Another reader gets it, or this one again. */
  giveBack(): void;
}

/** What a context is made for. */
export interface Origin {
  sender?: number;
  /** The request or job in hand. Gone once it is answered or done. */
  id?: MessageId | undefined;
  /** The time of the clock at which the caller is told `timeout`. */
  deadline?: number;
}

/** What a handler can reach outside its own extension. */
export class Context {
  private controller: AbortController | undefined;
  private timer: Timer | undefined;
  /** Ends what the handler leaves behind: waits for jobs, and jobs in hand. */
  private readonly left = new Set<() => void>();
  private over = false;

  /** @internal */
  constructor(
    private readonly link: Link,
    private readonly origin: Origin,
  ) {}

  /**
   * Calls another contract and waits for the answer. Meanwhile this extension serves other requests.
   *
   * A call made for a request has at most the time left for that request. Throws a {@link WeirError}; a provider's own is a
   * `Failure`. The code `invalid-answer` means that the answer does not fit the contract.
   */
  async call<A, R>(operation: Operation<A, R>, args: A, options: CallOptions = {}): Promise<R> {
    const payload = operation.args.encode(args);
    const answer = await this.callBytes(operation.contract, operation.name, payload, options);
    return received(operation.result, answer, "invalid-answer");
  }

  /** As {@link call}, with names and bytes. */
  async callBytes(
    contract: string,
    operation: string,
    payload: Uint8Array,
    options: CallOptions = {},
  ): Promise<Uint8Array> {
    options.signal?.throwIfAborted();
    if (!this.link.receiving)
      return this.link.callAlone(contract, operation, options.provider, payload, this.options(options));
    return this.sendBytes(contract, operation, payload, options).answer;
  }

  /** Sends a request and does not wait. Throws at once if it cannot be sent. Not possible in `onStart` and `onStop`. */
  send<A, R>(operation: Operation<A, R>, args: A, options: CallOptions = {}): Sent<R> {
    const sent = this.sendBytes(operation.contract, operation.name, operation.args.encode(args), options);
    const answer = sent.answer.then((payload) => received(operation.result, payload, "invalid-answer"));
    answer.catch(() => {});
    return { ...sent, answer };
  }

  /** As {@link send}, with names and bytes. */
  sendBytes(contract: string, operation: string, payload: Uint8Array, options: CallOptions = {}): Sent<Uint8Array> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (!this.link.receiving) {
      throw new WeirError({
        tag: "not-ready",
        val: "answers come from when `onStart` is over until the extension has stopped: use `call`",
      });
    }
    const { id, answer } = this.link.send(contract, operation, options.provider, payload, this.options(options));
    const cancel = (reason: unknown = new DOMException("the request was cancelled", "AbortError")) =>
      this.link.cancel(id, reason);
    if (signal !== undefined) {
      const aborted = () => cancel(signal.reason);
      signal.addEventListener("abort", aborted);
      const over = () => signal.removeEventListener("abort", aborted);
      answer.then(over, over);
    }
    return { answer, cancel: () => cancel() };
  }

  /**
   * Publishes an event to all subscribers of a topic: a {@link Topic}, or text, with the value as JSON.
   *
   * Where the operator's policy for a full subscription is `block`, nothing else of this extension runs until there is room,
   * or the time is over.
   */
  publish<T>(topic: Topic<T> | string, value: T, options: Timeout = {}): Receipt {
    const [name, payload] = asEvent(topic, value);
    return imported(() => this.link.host.publish(name, payload, this.options(options)));
  }

  /** Publishes an event to one extension alone. That extension must have subscribed to the topic. */
  publishTo<T>(extension: string, topic: Topic<T> | string, value: T, options: Timeout = {}): Receipt {
    const [name, payload] = asEvent(topic, value);
    return imported(() => this.link.host.publishTo(extension, name, payload, this.options(options)));
  }

  /** Publishes an event with these bytes as its payload. */
  publishBytes(topic: string, payload: Uint8Array, options: Timeout & { to?: string } = {}): Receipt {
    const { host } = this.link;
    const { to } = options;
    return imported(() =>
      to === undefined
        ? host.publish(topic, payload, this.options(options))
        : host.publishTo(to, topic, payload, this.options(options)),
    );
  }

  /** Subscribes to a pattern that is known only at run time. Its events reach the handler of `onAnyEvent`. */
  subscribe(pattern: string): void {
    this.link.subscribe(pattern);
  }

  /** Ends the subscription to exactly this pattern, and drops its events in the inbox. Throws `invalid` if there is none. */
  unsubscribe(pattern: string): void {
    this.link.unsubscribe(pattern);
  }

  /** Puts a job at the end of a queue. It stays there even if the request in hand fails. If the queue is full, the operator's policy decides. */
  put<T>(queue: Queue<T>, job: T, options: Timeout = {}): bigint {
    return this.putBytes(queue.name, queue.codec.encode(job), options);
  }

  /** As {@link put}, with a name and bytes. */
  putBytes(queue: string, job: Uint8Array, options: Timeout = {}): bigint {
    const number = this.link.queue(queue);
    return imported(() => this.link.host.put(number, job, this.options(options)));
  }

  /**
   * Waits for one job of a queue, without a timeout for as long as it takes. A job that does not fit is given back.
   *
   * A wait that is given up can still get a job, as with `Promise.race`: use `timeoutMs` or `signal`, which end the wait. When
   * the handler ends, its waits end, too, and the jobs that it took and did not finish are given back.
   *
   * `onJob` is better for an ordinary worker.
   */
  take<T>(queue: Queue<T>, options: TakeOptions = {}): Promise<Job<T>> {
    return this.takeAs(queue.name, queue.codec, options);
  }

  /** As {@link take}, with a name and bytes. */
  takeBytes(queue: string, options: TakeOptions = {}): Promise<Job<Uint8Array>> {
    return this.takeAs(queue, bytes, options);
  }

  /**
   * Waits. Meanwhile this extension serves other requests. At most 31 years; `NaN` is no time. Throws `timeout` at the deadline of the request in hand, and
   * `not-ready` in a background task when the extension stops.
   */
  sleep(ms: number): Promise<void> {
    const { timers, host } = this.link;
    return new Promise((resolve, reject) => {
      let [at, act] = [host.now() + ms, resolve as () => void];
      const deadline = this.deadline();
      if (deadline !== undefined && deadline < at) [at, act] = [deadline, () => reject(timedOut())];
      if (this.controller === undefined) {
        timers.at(at, act);
        return;
      }
      const { signal } = this.controller;
      if (signal.aborted) return reject(signal.reason);
      const aborted = () => {
        timers.cancel(timer);
        reject(signal.reason);
      };
      const timer = timers.at(at, () => {
        signal.removeEventListener("abort", aborted);
        act();
      });
      signal.addEventListener("abort", aborted);
    });
  }

  /** Aborts at the deadline of the request in hand; in a background task, when the extension stops. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      const controller = (this.controller = new AbortController());
      const deadline = this.deadline();
      const abort = () => controller.abort(timedOut());
      if (deadline !== undefined && deadline <= this.link.host.now()) abort();
      else if (deadline !== undefined) this.timer = this.link.timers.at(deadline, abort);
    }
    return this.controller.signal;
  }

  /** The id of the sender of the request, event or job in hand: an extension, a peer, or `main`. Main vouches for it. */
  get sender(): string | undefined {
    return this.origin.sender === undefined ? undefined : this.link.host.nameOf(this.origin.sender);
  }

  /** Milliseconds left to answer the request in hand. After that, the caller has been told `timeout`. */
  get remainingMs(): number | undefined {
    const deadline = this.deadline();
    return deadline === undefined ? undefined : Math.max(0, Math.ceil(deadline - this.link.host.now()));
  }

  /** A value of this extension's `config` table in the operator's file. */
  config(key: string): string | undefined {
    return this.link.host.config(key);
  }

  /** A variable of the environment that the operator granted. */
  env(name: string): string | undefined {
    return this.link.host.env(name);
  }

  /** The id under which the operator runs this extension. */
  get ownName(): string {
    return this.link.host.ownName();
  }

  /** Declares that this extension serves again after {@link interrupted}. The SDK does it before the first request. */
  ready(): void {
    this.link.host.ready();
  }

  /** Declares that this extension cannot serve for now, and why. Requests to it fail with `not-ready` until {@link ready}. */
  interrupted(reason: string): void {
    this.link.host.interrupted(reason);
  }

  /** The handler has ended: what still runs is done for nothing that Main knows. @internal */
  end(): void {
    this.origin.id = undefined;
    this.over = true;
    if (this.timer !== undefined) this.link.timers.cancel(this.timer);
    for (const end of this.left) end();
  }

  /** The extension stops. @internal */
  abort(): void {
    void this.signal;
    this.controller?.abort(new WeirError({ tag: "not-ready", val: "the extension stops" }));
  }

  private deadline(): number | undefined {
    return this.origin.id === undefined ? undefined : this.origin.deadline;
  }

  private options({ timeoutMs }: Timeout): Options {
    // Main counts from 1: with no time left, ask for the least.
    const whole = timeoutMs === undefined ? undefined : Math.min(2 ** 32 - 1, Math.max(1, Math.floor(timeoutMs) || 0));
    return { timeoutMs: whole, parent: this.origin.id };
  }

  private takeAs<T>(queue: string, codec: Codec<T>, options: TakeOptions): Promise<Job<T>> {
    const taken = this.takeFitting(queue, codec, options);
    // A handler that has ended need not hear of the end of its waits.
    taken.catch(() => {});
    return taken;
  }

  private async takeFitting<T>(queue: string, codec: Codec<T>, { timeoutMs, signal }: TakeOptions): Promise<Job<T>> {
    const { jobs, host } = this.link;
    const ends = [timeoutMs === undefined ? undefined : host.now() + timeoutMs, this.deadline()].filter(
      (end) => end !== undefined,
    );
    for (;;) {
      signal?.throwIfAborted();
      if (this.over) throw handlerEnded();
      const job = await this.waitForJob(queue, ends, signal);
      let payload: T;
      try {
        payload = received(codec, job.payload, "invalid-argument");
      } catch (error) {
        log.warn("a job does not fit", { queue, error: forLog(error) });
        jobs.giveBack(job.id);
        continue;
      }
      return this.asJob(payload, job);
    }
  }

  private async waitForJob(queue: string, ends: number[], signal: AbortSignal | undefined): Promise<WireJob> {
    const { jobs, timers } = this.link;
    const [waiting, giveUp] = jobs.take(queue);
    const timer = ends.length === 0 ? undefined : timers.at(Math.min(...ends), () => giveUp(timedOut()));
    const aborted = () => giveUp(signal?.reason);
    const leave = () => giveUp(handlerEnded());
    signal?.addEventListener("abort", aborted);
    this.left.add(leave);
    try {
      return await waiting;
    } finally {
      if (timer !== undefined) timers.cancel(timer);
      signal?.removeEventListener("abort", aborted);
      this.left.delete(leave);
    }
  }

  private asJob<T>(payload: T, { id, sender, deliveries }: WireJob): Job<T> {
    const { host, jobs } = this.link;
    const leave = () => jobs.giveBack(id);
    const over = (end: (id: MessageId) => void) => () => {
      imported(() => end(id));
      this.left.delete(leave);
    };
    const job = {
      payload,
      id,
      deliveries,
      sender: host.nameOf(sender),
      done: over(host.done.bind(host)),
      giveBack: over(host.giveBack.bind(host)),
    };
    // The wait was over, but the handler ended first.
    if (this.over) {
      leave();
      throw handlerEnded();
    }
    this.left.add(leave);
    return job;
  }
}

function handlerEnded(): WeirError {
  return new WeirError({ tag: "not-ready", val: "the handler that waits for a job has ended" });
}

function asEvent<T>(topic: Topic<T> | string, value: T): [string, Uint8Array] {
  return topic instanceof Topic ? [topic.pattern, topic.codec.encode(value)] : [topic, json<T>().encode(value)];
}

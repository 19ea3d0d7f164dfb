// An extension: its handlers, and the manifest that they fit.

import { argumentsFrom, received, type Codec, type Operation, type Queue, Topic, json, bytes } from "./contract.js";
import type { Context } from "./context.js";
import { invalid } from "./error.js";
import { contractsSection, manifestSection, type Manifest, type ManifestSection } from "./manifest.js";
import { covers, isPattern, repeated } from "./names.js";

/** An event, with the envelope that Main stamped on it. */
export interface Event<T> {
  /** The published value. */
  payload: T;
  /** The topic that it was published under. */
  topic: string;
  /** Rises with each event of the topic. 0 for an event published to this extension alone. */
  sequence: bigint;
  /** Events of this subscription that were lost just before this one. */
  lost: bigint;
  /** Whether it was published before this instance subscribed: it is the last value of a topic that Main retains. */
  retained: boolean;
}

type Awaitable<T> = T | Promise<T>;

/** @internal */
export interface Served {
  operation: Operation<any, any>;
  /** From the payload of the request to that of the answer. */
  handle(context: Context, payload: Uint8Array): Awaitable<Uint8Array>;
}

/** @internal */
export type EventHandler = (context: Context, event: Event<Uint8Array>) => Awaitable<void>;

/** @internal */
export interface Worker {
  queue: string;
  atOnce: number;
  handle(context: Context, payload: Uint8Array): Awaitable<void>;
}

/** @internal */
export type Hook = (context: Context) => Awaitable<void>;

/**
 * An extension: its manifest, and its handlers. They may be `async`; several are under way at once while each waits. One
 * that does not wait runs to its end undisturbed.
 *
 * A handler that throws a {@link WeirError} answers its caller with it. Any other exception is logged with the functions that
 * it came through; the caller is answered with the code `unexpected`, and the extension goes on.
 */
export class Extension {
  /** @internal */
  readonly served: Served[] = [];
  /** @internal */
  readonly subscriptions: { pattern: string; handle: EventHandler }[] = [];
  /** @internal */
  readonly workers: Worker[] = [];
  /** @internal */
  readonly tasks: Hook[] = [];
  /** @internal */
  anyEvent: EventHandler | undefined;
  /** @internal */
  startHook: Hook | undefined;
  /** @internal */
  stopHook: Hook | undefined;

  constructor(readonly manifest: Manifest) {}

  /** Serves an operation. Arguments that do not fit are answered with the code `invalid-argument`. */
  on<A, R>(operation: Operation<A, R>, handler: (context: Context, args: A) => Awaitable<R>): this {
    this.served.push({
      operation,
      handle: async (context, payload) =>
        operation.result.encode(await handler(context, argumentsFrom(operation, payload))),
    });
    return this;
  }

  /**
   * Subscribes at start to a {@link Topic}, or to a pattern of events in JSON. The handler gets the events one after the other, in
   * the order in which they came. An event that does not fit is logged, and so is what the handler throws.
   *
   * While a handler waits, up to 256 events wait for it here. Beyond that the oldest are lost, under every policy, and
   * {@link Event.lost} counts them. Use a queue for what must not be lost.
   */
  onEvent<T = unknown>(
    topic: Topic<T> | string,
    handler: (context: Context, event: Event<T>) => Awaitable<void>,
  ): this {
    const codec: Codec<T> = topic instanceof Topic ? topic.codec : json<T>();
    const pattern = String(topic);
    this.subscriptions.push({
      pattern,
      handle: (context, event) =>
        handler(context, { ...event, payload: received(codec, event.payload, "invalid-argument") }),
    });
    return this;
  }

  /** As {@link onEvent}, with the payload as bytes. */
  onEventBytes(pattern: string, handler: (context: Context, event: Event<Uint8Array>) => Awaitable<void>): this {
    return this.onEvent(new Topic(pattern, bytes, () => ({})), handler);
  }

  /** Handles the events of patterns from `Context.subscribe`. */
  onAnyEvent(handler: (context: Context, event: Event<Uint8Array>) => Awaitable<void>): this {
    this.anyEvent = handler;
    return this;
  }

  /**
   * Takes jobs of a queue, by default one after the other. A job is done when its handler returns. If the job does not fit, or
   * the handler throws, that is logged and the job is given back.
   *
   * A job can come twice: if an extension dies, its jobs in hand are delivered again. On stop, the extension finishes the
   * jobs in hand and takes no more.
   */
  onJob<T>(
    queue: Queue<T>,
    handler: (context: Context, job: T) => Awaitable<void>,
    { atOnce = 1 }: { atOnce?: number } = {},
  ): this {
    this.workers.push({
      queue: queue.name,
      atOnce,
      handle: (context, payload) => handler(context, received(queue.codec, payload, "invalid-argument")),
    });
    return this;
  }

  /** Runs before the extension declares itself ready. It can call other contracts, but receives nothing yet. What it throws ends the extension. */
  onStart(hook: (context: Context) => Awaitable<void>): this {
    this.startHook = hook;
    return this;
  }

  /** Runs on stop, when everything in hand is answered. */
  onStop(hook: (context: Context) => Awaitable<void>): this {
    this.stopHook = hook;
    return this;
  }

  /** Runs beside the handlers, from ready until stop: for work at intervals. What it throws before stop ends the extension: handlers in hand then have 1 s. */
  background(task: (context: Context) => Awaitable<void>): this {
    this.tasks.push(task);
    return this;
  }

  /** The sections of the component. Throws if the handlers do not fit the manifest. @internal */
  sections(defaults: { id: string; version: string }): { manifest: ManifestSection; contracts: string } {
    const manifest = manifestSection(this.manifest, defaults);
    this.check(manifest);
    return { manifest, contracts: contractsSection(this.manifest) };
  }

  /** Compares the handlers with the manifest. The error lists what is missing and what is too much. @internal */
  check(manifest: ManifestSection): void {
    const faults = [
      ...this.operationFaults(manifest),
      ...this.subscriptionFaults(manifest),
      ...this.queueFaults(manifest),
    ];
    if (faults.length > 0)
      throw invalid(`the manifest of \`${manifest.id}\` does not fit its handlers: ${faults.join("; ")}`);
  }

  private operationFaults({ fulfills }: ManifestSection): string[] {
    const served = this.served.map(({ operation }) => operation);
    const shown = ({ contract, name }: Operation<any, any>) => `\`${contract}\` \`${name}\``;
    const same = (one: Operation<any, any>) => (other: Operation<any, any>) =>
      one.contract === other.contract && one.name === other.name;
    const described = (this.manifest.fulfills ?? [])
      .flatMap((contract) => contract.members)
      .filter((member): member is Operation<any, any> => "args" in member);
    return [
      ...served
        .filter(({ contract }) => !fulfills.includes(contract))
        .map((operation) => `${shown(operation)} has a handler, but \`fulfills\` lacks \`${operation.contract}\``),
      ...served
        .filter((operation, place) => served.slice(0, place).some(same(operation)))
        .map((operation) => `${shown(operation)} has two handlers`),
      ...described
        .filter((operation) => !served.some(same(operation)))
        .map((operation) => `${shown(operation)} has no handler`),
    ];
  }

  private subscriptionFaults({ subscribes }: ManifestSection): string[] {
    const patterns = this.subscriptions.map(({ pattern }) => pattern);
    return [
      ...patterns
        .filter((pattern) => !isPattern(pattern))
        .map((pattern) => `\`${pattern}\` has a handler, but is no topic or pattern`),
      ...patterns
        .filter((pattern) => !subscribes.some((granted) => covers(granted, pattern)))
        .map((pattern) => `\`${pattern}\` has a handler, but \`subscribes\` does not cover it`),
      ...repeated(patterns).map((pattern) => `\`${pattern}\` has two handlers`),
      ...(this.anyEvent === undefined ? subscribes : [])
        .filter((granted) => !patterns.some((pattern) => covers(granted, pattern)))
        .map((granted) => `\`subscribes\` names \`${granted}\`, which has no handler`),
    ];
  }

  private queueFaults({ takes }: ManifestSection): string[] {
    const queues = this.workers.map(({ queue }) => queue);
    return [
      ...queues
        .filter((queue) => !takes.includes(queue))
        .map((queue) => `jobs of \`${queue}\` have a handler, but \`takes\` lacks \`${queue}\``),
      ...repeated(queues).map((queue) => `jobs of \`${queue}\` have two handlers`),
      ...this.workers
        .filter(({ atOnce }) => atOnce < 1)
        .map(({ queue }) => `jobs of \`${queue}\` have a handler, but it is to have none of them at once`),
    ];
  }
}

/** An extension of this manifest, without handlers yet. */
export function extension(manifest: Manifest): Extension {
  return new Extension(manifest);
}

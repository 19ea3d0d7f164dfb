// The loop: takes messages, starts their handlers, and sends their answers. It waits only when no handler can go on.

import { Context, type Origin } from "./context.js";
import { asAnswer, forLog, imported, reasonOf, WeirError } from "./error.js";
import { Events } from "./events.js";
import type { Extension, Hook, Served, Worker } from "./extension.js";
import type { Answer, Host, Message, MessageId, Request, WireJob } from "./host.js";
import { Link } from "./link.js";
import { log } from "./log.js";

/** Messages taken at once. */
const BATCH = 32;

/** How long handlers in hand may take when a background task has failed. */
const GRACE_MS = 1000;

export class Server {
  readonly link: Link;
  private readonly operations = new Map<number, Served>();
  private readonly workers = new Map<number, Worker>();
  private readonly events: Events;
  private background: Context[] = [];
  /** Handlers under way. */
  private inHand = 0;
  /** Only answers to requests under way still come from the inbox. */
  private stopping = false;
  private failed: { error: unknown; isOver: boolean } | undefined;

  constructor(
    private readonly host: Host,
    private readonly extension: Extension,
  ) {
    this.link = new Link(host);
    this.events = new Events(this.link, extension.anyEvent);
  }

  /** Serves until stop, then finishes everything in hand. Throws what the extension ends with. */
  async run(): Promise<void> {
    const { link, extension, host } = this;
    this.register();
    if (extension.startHook !== undefined) await this.runHook(extension.startHook);
    host.ready();
    link.receiving = true;
    link.jobs.start();
    for (const task of extension.tasks) this.startTask(task);
    await this.pump(() => this.stopping && (this.inHand === 0 || this.failed?.isOver === true));
    link.stopReceiving();
    if (this.failed !== undefined) throw this.failed.error;
    if (extension.stopHook !== undefined) await this.runHook(extension.stopHook);
  }

  private register(): void {
    const { link, extension, host } = this;
    const contracts = new Map<string, Served[]>();
    for (const served of extension.served) {
      const { contract } = served.operation;
      contracts.set(contract, [...(contracts.get(contract) ?? []), served]);
    }
    for (const [contract, operations] of contracts) {
      const first = imported(() =>
        host.serve(
          contract,
          operations.map(({ operation }) => operation.name),
        ),
      );
      for (const [index, served] of operations.entries()) this.operations.set(first + index, served);
    }
    for (const { pattern, handle } of extension.subscriptions) this.events.add(link.subscribe(pattern), handle);
    for (const worker of extension.workers) {
      this.workers.set(link.queue(worker.queue), worker);
      link.jobs.offer(worker.queue, worker.atOnce);
    }
  }

  /** Runs a hook to its end. Nothing is received meanwhile. */
  private async runHook(hook: Hook): Promise<void> {
    let outcome: { error?: unknown } | undefined;
    const over = (ended: { error?: unknown }) => {
      outcome = ended;
      this.host.wake?.();
    };
    asyncly(() => hook(new Context(this.link, {}))).then(
      () => over({}),
      (error: unknown) => over({ error }),
    );
    await this.pump(() => outcome !== undefined);
    if (outcome !== undefined && "error" in outcome) throw outcome.error;
  }

  private startTask(task: Hook): void {
    const context = new Context(this.link, {});
    // So that a stop can end its waits.
    void context.signal;
    this.background.push(context);
    asyncly(() => task(context))
      .catch((error: unknown) => {
        if (this.stopping) return;
        const failed = { error, isOver: false };
        this.failed = failed;
        // Handlers in hand may end the instance first, or wait for what never comes.
        this.host.error(reasonOf(error));
        this.link.timers.at(this.host.now() + GRACE_MS, () => (failed.isOver = true));
        this.stop();
        // Without a stop from Main, the inbox may hold new requests.
        this.link.stopReceiving();
        this.host.wake?.();
      })
      .finally(() => context.end());
  }

  private async pump(isOver: () => boolean): Promise<void> {
    const {
      host,
      link: { timers },
    } = this;
    for (;;) {
      await host.settled();
      if (isOver()) return;
      const arrived = await host.wait(this.listens(), timers.next());
      if (timers.next() !== undefined) timers.fire(host.now());
      if (arrived && this.listens()) this.receive();
    }
  }

  private listens(): boolean {
    return this.link.receiving && (!this.stopping || this.link.awaitsAnswers());
  }

  private receive(): void {
    let messages: Message[];
    try {
      messages = imported(() => this.host.receiveBatch(BATCH, "any-order", 0));
    } catch (error) {
      if (error instanceof WeirError && error.case === "timeout") return;
      throw error;
    }
    if (messages.length === 0) {
      if (this.stopping) this.link.stopReceiving();
      else this.stop();
      return;
    }
    this.link.jobs.arrived(messages);
    const received = this.host.now();
    for (const message of messages) this.start(message, received);
  }

  private stop(): void {
    this.stopping = true;
    this.link.jobs.close();
    for (const context of this.background) context.abort();
  }

  private start(message: Message, received: number): void {
    switch (message.tag) {
      case "request":
        return this.track(this.answer(message.val, received));
      case "response":
        return this.link.answered(message.val);
      case "event": {
        const work = this.events.start(message.val);
        return work === undefined ? undefined : this.track(work);
      }
      case "job": {
        const job = this.link.jobs.handOn(message.val);
        return job === undefined ? undefined : this.track(this.work(job));
      }
    }
  }

  /** Counts a handler as under way. The promise is never rejected. */
  private track(handler: Promise<void>): void {
    this.inHand += 1;
    void handler.then(() => {
      this.inHand -= 1;
      this.host.wake?.();
    });
  }

  private async answer({ id, sender, operation, remainingMs, payload }: Request, received: number): Promise<void> {
    const served = this.operations.get(operation);
    const deadline = received + remainingMs;
    const context = new Context(this.link, { sender, id, deadline });
    let answer: Answer;
    try {
      if (served === undefined)
        throw new WeirError({ tag: "invalid", val: `operation number ${operation} was never given out` });
      answer = { tag: "ok", val: await served.handle(context, payload) };
    } catch (thrown) {
      if (!(thrown instanceof WeirError)) {
        log.error(`a handler failed unexpectedly: ${forLog(thrown)}`, {
          operation: String(served?.operation ?? operation),
        });
      }
      answer = { tag: "err", val: asAnswer(thrown) };
    }
    context.end();
    this.respond(id, answer, deadline);
  }

  /** An answer that is too large is replaced by an error. Other refusals have no remedy. */
  private respond(id: MessageId, answer: Answer, deadline: number): void {
    try {
      imported(() => this.host.respond(id, answer));
    } catch (error) {
      const tooLarge = error instanceof WeirError && error.case === "too-large";
      // The caller has been told `timeout`, and Main has forgotten the request.
      if (!tooLarge && this.host.now() >= deadline) return;
      log.warn("an answer was refused", { error: forLog(error) });
      if (tooLarge && answer.tag === "ok") this.respond(id, { tag: "err", val: asAnswer(error) }, deadline);
    }
  }

  private async work({ id, queue, sender, deliveries, payload }: WireJob): Promise<void> {
    const worker = this.workers.get(queue);
    const origin: Origin = { sender, id };
    const context = new Context(this.link, origin);
    try {
      if (worker === undefined)
        throw new WeirError({ tag: "invalid", val: `queue number ${queue} was never given out` });
      await worker.handle(context, payload);
      imported(() => this.host.done(id));
    } catch (thrown) {
      this.link.jobs.giveBack(id);
      log.warn(`a job was not done: ${forLog(thrown)}`, { queue: worker?.queue ?? queue, job: id, deliveries });
    }
    context.end();
    if (worker === undefined) return;
    try {
      this.link.jobs.offer(worker.queue, 1);
    } catch (error) {
      log.error("no more jobs can be taken", { queue: worker.queue, error: forLog(error) });
    }
  }
}

/** Calls a function, with what it throws as a rejected promise. */
async function asyncly<T>(call: () => T | Promise<T>): Promise<T> {
  return await call();
}

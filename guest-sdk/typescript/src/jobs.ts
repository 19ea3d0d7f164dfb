// Waits for jobs, by queue, and the number of jobs to ask Main for.

import { WeirError, forLog, imported } from "./error.js";
import type { Message, MessageId, WireJob } from "./host.js";
import type { Link } from "./link.js";
import { log } from "./log.js";

interface Taker {
  resolve(job: WireJob): void;
  reject(reason: unknown): void;
}

interface Taken {
  name: string;
  /** Waits for one job each, oldest first. */
  takers: Taker[];
  /** Jobs that the queue's handler could take now. */
  free: number;
  /** Delivered jobs that are not handed on yet. Main counts them as taken; their takers still wait. */
  arrived: number;
}

export class Jobs {
  /** From the first receive until stop. */
  private open = false;
  private readonly queues = new Map<number, Taken>();

  constructor(private readonly link: Link) {}

  start(): void {
    this.open = true;
    for (const number of this.queues.keys()) this.ask(number);
  }

  /** No more jobs come: waits for one fail. */
  close(): void {
    this.open = false;
    for (const [number, queue] of this.queues) {
      for (const taker of queue.takers.splice(0)) taker.reject(noMore(queue.name));
      try {
        // Main may not have said stop.
        this.link.host.take(number, { tag: "next", val: 0 });
      } catch {
        // It has, or the queue is gone.
      }
    }
  }

  /** Lets the queue's handler take this many more jobs. */
  offer(name: string, more: number): void {
    const number = this.link.queue(name);
    this.queue(number, name).free += more;
    if (this.open) this.ask(number);
  }

  /** Waits for one job. The function gives up the wait. */
  take(name: string): [Promise<WireJob>, (reason: unknown) => void] {
    if (!this.open) throw noMore(name);
    const number = this.link.queue(name);
    const queue = this.queue(number, name);
    let taker!: Taker;
    const job = new Promise<WireJob>((resolve, reject) => queue.takers.push((taker = { resolve, reject })));
    const remove = (reason: unknown) => {
      const place = queue.takers.indexOf(taker);
      if (place < 0) return;
      queue.takers.splice(place, 1);
      taker.reject(reason);
      if (this.open) this.ask(number);
    };
    try {
      this.ask(number);
    } catch (error) {
      remove(error);
    }
    return [job, remove];
  }

  /** Counts the jobs of a batch, before the first message of it is handled. */
  arrived(messages: Message[]): void {
    for (const message of messages) {
      const queue = message.tag === "job" ? this.queues.get(message.val.queue) : undefined;
      if (queue !== undefined) queue.arrived += 1;
    }
  }

  /** Hands a job to the longest wait for one. Returns it if it is for the queue's handler. An unwanted job goes back to Main. */
  handOn(job: WireJob): WireJob | undefined {
    const queue = this.queues.get(job.queue);
    if (queue !== undefined) {
      queue.arrived -= 1;
      const taker = queue.takers.shift();
      if (taker !== undefined) {
        taker.resolve(job);
        return undefined;
      }
      if (queue.free > 0) {
        queue.free -= 1;
        return job;
      }
    }
    this.giveBack(job.id);
    return undefined;
  }

  giveBack(job: MessageId): void {
    try {
      imported(() => this.link.host.giveBack(job));
    } catch (error) {
      log.warn("a job could not be given back", { job, error: forLog(error) });
    }
  }

  private queue(number: number, name: string): Taken {
    let queue = this.queues.get(number);
    if (queue === undefined) this.queues.set(number, (queue = { name, takers: [], free: 0, arrived: 0 }));
    return queue;
  }

  private ask(number: number): void {
    const { takers, free, arrived } = this.queues.get(number)!;
    const wanted = Math.max(0, takers.length + free - arrived);
    imported(() => this.link.host.take(number, { tag: "next", val: wanted }));
  }
}

function noMore(queue: string): WeirError {
  return new WeirError({
    tag: "not-ready",
    val: `jobs of \`${queue}\` come from when \`onStart\` is over until the extension is told to stop`,
  });
}

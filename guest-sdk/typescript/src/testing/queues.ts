// Shared queues, of the Main in memory.

import type { WireError } from "../error.js";
import type { Message, MessageId } from "../host.js";
import type { ManifestSection } from "../manifest.js";

/** Deliveries of a job, before it is a dead letter: Main's default. */
const MOST_DELIVERIES = 3;

/** The state of a job. `dead`: it was delivered three times, and given back each time. */
export interface JobState {
  state: "waiting" | "in-hand" | "done" | "dead";
  deliveries: number;
}

interface Put extends JobState {
  id: MessageId;
  queue: string;
  payload: Uint8Array;
  sender: number;
}

export class Queues {
  private readonly queues: { name: string; wanted: number }[] = [];
  private readonly jobs: Put[] = [];

  constructor(private readonly manifest: ManifestSection) {}

  open(queue: string): number {
    const { puts, takes } = this.manifest;
    if (![...puts, ...takes].includes(queue)) throw denied(`queue \`${queue}\``, "takes` or `puts");
    const known = this.queues.findIndex(({ name }) => name === queue);
    return known >= 0 ? known : this.queues.push({ name: queue, wanted: 0 }) - 1;
  }

  name(queue: number): string {
    const found = this.queues[queue];
    if (found === undefined) throw wire({ tag: "invalid", val: `queue number ${queue} was never given out` });
    return found.name;
  }

  put(id: MessageId, queue: string, payload: Uint8Array, sender: number): void {
    this.jobs.push({ id, queue, payload, sender, state: "waiting", deliveries: 0 });
  }

  take(queue: number, wanted: number): void {
    const name = this.name(queue);
    if (!this.manifest.takes.includes(name)) throw denied(`queue \`${name}\``, "takes");
    this.queues[queue]!.wanted = wanted;
  }

  done(job: MessageId): void {
    this.inHand(job).state = "done";
  }

  giveBack(job: MessageId): void {
    const put = this.inHand(job);
    put.state = put.deliveries < MOST_DELIVERIES ? "waiting" : "dead";
  }

  state(id: MessageId): JobState {
    const found = this.jobs.find((job) => job.id === id);
    if (found === undefined) throw new Error(`no job has the id ${id}`);
    return { state: found.state, deliveries: found.deliveries };
  }

  /** Whether there is a job that the extension wants. */
  hasJobs(): boolean {
    return this.queues.some(({ name, wanted }) => wanted > 0 && this.waiting(name).length > 0);
  }

  /** The jobs that the extension wants, now in its hands. */
  deliver(): Message[] {
    return [...this.queues.entries()].flatMap(([number, queue]) => {
      const delivered = this.waiting(queue.name).slice(0, queue.wanted);
      queue.wanted -= delivered.length;
      return delivered.map((job): Message => {
        job.state = "in-hand";
        job.deliveries += 1;
        const { id, sender, deliveries, payload } = job;
        return { tag: "job", val: { id, queue: number, sender, deliveries, waitedUs: 0, payload } };
      });
    });
  }

  private waiting(queue: string): Put[] {
    return this.jobs.filter((job) => job.queue === queue && job.state === "waiting");
  }

  private inHand(id: MessageId): Put {
    const job = this.jobs.find((known) => known.id === id && known.state === "in-hand");
    if (job === undefined) throw wire({ tag: "invalid", val: `job ${id} is not in hand` });
    return job;
  }
}

/** An error as the bindings throw it. */
export function wire(payload: WireError): Error {
  return Object.assign(new Error(payload.tag), { payload });
}

export function denied(what: string, key: string): Error {
  return wire({ tag: "permission-denied", val: `${what}: \`${key}\` does not list it` });
}

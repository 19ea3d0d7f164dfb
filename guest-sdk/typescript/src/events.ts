// Events: handed to their handlers one after the other, in the order in which they came.

import { Context } from "./context.js";
import { forLog } from "./error.js";
import type { Event, EventHandler } from "./extension.js";
import type { WireEvent } from "./host.js";
import type { Link } from "./link.js";
import { log } from "./log.js";

/**
 * Events that may wait for one waiting handler: Main's default for an extension.
 *
 * They cannot stay in the inbox. It yields all subscriptions or none, and the handler may be waiting for an event of another
 * subscription.
 */
const WAITING = 256;

interface Lane {
  handle: EventHandler;
  waiting: { sender: number; event: Event<Uint8Array> }[];
  busy: boolean;
}

export class Events {
  /** By the number of the subscription. */
  private readonly lanes = new Map<number, Lane>();
  private readonly any: Lane | undefined;

  constructor(
    private readonly link: Link,
    anyEvent: EventHandler | undefined,
  ) {
    this.any = anyEvent === undefined ? undefined : lane(anyEvent);
  }

  add(subscription: number, handle: EventHandler): void {
    this.lanes.set(subscription, lane(handle));
  }

  /** The work for an event. None if the handler is busy and will get to it. */
  start({ sender, subscription, topic, sequence, lost, retained, payload }: WireEvent): Promise<void> | undefined {
    const lane = this.lanes.get(subscription) ?? this.any;
    if (lane === undefined) return undefined;
    const { waiting } = lane;
    waiting.push({
      sender,
      event: { payload, topic: topic ?? this.link.topicOf(subscription), sequence, lost, retained },
    });
    if (waiting.length > WAITING) {
      const oldest = waiting.shift()!;
      waiting[0]!.event.lost += oldest.event.lost + 1n;
    }
    return lane.busy ? undefined : this.handleAll(lane);
  }

  private async handleAll(lane: Lane): Promise<void> {
    lane.busy = true;
    for (let next = lane.waiting.shift(); next !== undefined; next = lane.waiting.shift()) {
      const { sender, event } = next;
      const context = new Context(this.link, { sender });
      try {
        await lane.handle(context, event);
      } catch (thrown) {
        log.warn(`an event was not handled: ${forLog(thrown)}`, { topic: event.topic });
      }
      context.end();
    }
    lane.busy = false;
  }
}

function lane(handle: EventHandler): Lane {
  return { handle, waiting: [], busy: false };
}

// Timers, in the order of their times. Whoever runs the loop fires them.

/** A timer that can still be taken back. */
export interface Timer {
  readonly at: number;
  run: (() => void) | undefined;
}

/** The latest time of a timer, 31 years: the nanoseconds of it fit the host's clock. */
const LATEST = 1e12;

export class Timers {
  private waiting: Timer[] = [];

  /** Runs a function at this time of the host's clock. A time that is no number is over; an endless one is the latest. */
  at(time: number, run: () => void): Timer {
    const at = Number.isNaN(time) ? 0 : Math.min(Math.max(0, time), LATEST);
    const timer: Timer = { at, run };
    let [low, high] = [0, this.waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.waiting[middle]!.at <= at) low = middle + 1;
      else high = middle;
    }
    this.waiting.splice(low, 0, timer);
    return timer;
  }

  cancel(timer: Timer): void {
    timer.run = undefined;
    const place = this.waiting.indexOf(timer);
    if (place >= 0) this.waiting.splice(place, 1);
  }

  /** The time of the next timer. */
  next(): number | undefined {
    return this.waiting[0]?.at;
  }

  /** Runs the timers whose time has come. Returns whether there were any. */
  fire(now: number): boolean {
    let fired = false;
    while (this.waiting[0] !== undefined && this.waiting[0].at <= now) {
      const { run } = this.waiting.shift()!;
      run?.();
      fired = true;
    }
    return fired;
  }
}

/**
 * Replaces the timers of the engine, which would stand still while the extension waits for its inbox.
 *
 * `failed` gets what a callback throws.
 */
export function installTimers(timers: Timers, now: () => number, failed: (thrown: unknown) => void): void {
  const running = new Map<number, Timer>();
  let last = 0;
  const start =
    (repeats: boolean) =>
    (callback: (...args: unknown[]) => unknown, ms = 0, ...args: unknown[]): number => {
      const number = ++last;
      const arm = () => {
        const timer = timers.at(now() + Math.max(0, Number(ms) || 0), () => {
          if (repeats) arm();
          else running.delete(number);
          try {
            callback(...args);
          } catch (thrown) {
            failed(thrown);
          }
        });
        running.set(number, timer);
      };
      arm();
      return number;
    };
  const clear = (number?: number): void => {
    const timer = number === undefined ? undefined : running.get(number);
    if (timer === undefined) return;
    running.delete(number!);
    timers.cancel(timer);
  };
  Object.assign(globalThis, {
    setTimeout: start(false),
    setInterval: start(true),
    clearTimeout: clear,
    clearInterval: clear,
  });
}

// The extension in a component: `weir-js build` makes `run` of this.
//
// StarlingMonkey's own event loop knows no inbox, and waiting for the inbox stops it. So the loop is the SDK's: it lets all
// promises run, and then blocks in `poll` until the inbox or a timer is ready.

import * as channel from "weir:iec/channel@0.1.0";
import * as events from "weir:iec/events@0.1.0";
import * as lifecycle from "weir:iec/lifecycle@0.1.0";
import * as weirLog from "weir:iec/log@0.1.0";
import * as peers from "weir:iec/peers@0.1.0";
import * as queues from "weir:iec/queues@0.1.0";
import * as requests from "weir:iec/requests@0.1.0";
import * as environment from "wasi:cli/environment@0.2.12";
import * as exits from "wasi:cli/exit@0.2.12";
import * as clock from "wasi:clocks/monotonic-clock@0.2.12";
import * as store from "wasi:config/store@0.2.0-rc.1";
import * as io from "wasi:io/poll@0.2.12";

import { forLog, reasonOf } from "./error.js";
import type { Extension } from "./extension.js";
import { files } from "./guest/files.js";
import { setHost, type Host } from "./host.js";
import { log } from "./log.js";
import { Server } from "./serve.js";
import { installTimers } from "./timers.js";

/** The engine's timer. It runs when no promise has anything left to run. */
const engineTimeout = globalThis.setTimeout;

const NANOSECONDS = 1e6;

/** Runs an extension until Main says stop. */
export async function main(extension: Extension): Promise<void> {
  const host = makeHost();
  setHost(host);
  const server = new Server(host, extension);
  installTimers(server.link.timers, host.now, (thrown) => log.error(`a timer failed: ${forLog(thrown)}`));
  // With the interpreter's own, the instance would end.
  globalThis.fetch = () => Promise.reject(new Error("an extension has no `fetch`: call a contract instead"));
  try {
    await server.run();
  } catch (thrown) {
    log.error(`the extension failed: ${forLog(thrown)}`);
    lifecycle.error(reasonOf(thrown));
    throw thrown;
  }
}

function makeHost(): Host {
  const freeArguments = freeingArguments();
  let inbox: io.Pollable | undefined;
  const freeing =
    <A extends unknown[], R>(imported: (...args: A) => R) =>
    (...args: A): R => {
      try {
        return imported(...args);
      } finally {
        freeArguments();
      }
    };
  return {
    serve: freeing(channel.serve),
    receiveBatch: channel.receiveBatch,
    respond: freeing(channel.respond),
    open: freeing(requests.open),
    call: freeing(requests.call),
    send: freeing(requests.send),
    cancel: requests.cancel,
    subscribe: freeing(events.subscribe),
    unsubscribe: events.unsubscribe,
    publish: freeing(events.publish),
    publishTo: freeing(events.publishTo),
    openQueue: freeing(queues.open),
    put: freeing(queues.put),
    take: queues.take,
    done: queues.done,
    giveBack: queues.giveBack,
    ready: lifecycle.ready,
    interrupted: freeing(lifecycle.interrupted),
    error: freeing(lifecycle.error),
    ownName: peers.ownName,
    nameOf: peers.nameOf,
    log: freeing(weirLog.write),
    config: freeing(store.get),
    files,
    env: (name) => environment.getEnvironment().find(([known]) => known === name)?.[1],
    exit: (code) => {
      exits.exitWithCode(code);
      throw new Error("the instance has ended");
    },
    now: () => Number(clock.now()) / NANOSECONDS,
    settled: () => new Promise((resolve) => engineTimeout(resolve, 0)),
    wait: (listens, until) => {
      if (listens) inbox ??= channel.subscribeInbox();
      const waited = listens && inbox !== undefined ? [inbox] : [];
      const timer = until === undefined ? undefined : clock.subscribeInstant(BigInt(Math.ceil(until * NANOSECONDS)));
      if (timer !== undefined) waited.push(timer);
      if (waited.length === 0) throw new Error("the extension waits for what never comes");
      const ready = io.poll(waited);
      timer?.[Symbol.dispose]();
      freeArguments();
      return listens && ready.includes(0);
    },
  };
}

/**
 * The bindings of componentize-js 0.23 never free the memory that they copy arguments of imports into. This keeps the
 * addresses, and returns a function that frees them.
 *
 * The bindings have a scope of their own, which a function made there reaches. Each import is over when it returns, so
 * between two of them no argument is in use.
 */
function freeingArguments(): () => void {
  const Bindings = channel.serve.constructor as FunctionConstructor;
  return new Bindings(`
    const [allocate, free] = [$realloc, $dealloc];
    const copied = [];
    $realloc = (...asked) => {
      const address = allocate(...asked);
      copied.push(address);
      return address;
    };
    return () => {
      for (const address of copied.splice(0)) free(address);
    };
  `)();
}

// Read by the TypeScript compiler, and never run.

import { Weir, WeirError, type Gap, type Job, type Json } from "../weir.js";

interface Memory {
  total_kib: number;
  available_kib: number;
}

interface Changed {
  key: string;
  value: Json;
}

const weir = new Weir("ws://127.0.0.1:7410", "app:page", {
  ticket: async () => (await fetch("/ticket", { method: "POST" })).text(),
  WebSocket,
  minDelay: 100,
  maxDelay: 1000,
});
const off: () => void = weir.on("close", ({ code, reason, retryInMs }) => {
  console.log(code.toFixed(), reason.trim(), retryInMs?.toFixed());
});
weir.on("open", ({ again }) => console.log(again satisfies boolean));
// @ts-expect-error: there is no such event.
weir.on("opened", () => {});

const memory = await weir.call<Memory>("device.info@1/memory", undefined, { timeoutMs: 500, provider: "device-info" });
console.log(memory.total_kib.toFixed());
const unknown: unknown = await weir.call("device.info@1/memory");
// @ts-expect-error: nobody said what it is.
console.log((await weir.call("device.info@1/memory")).total_kib);
const changed: Changed = { key: "volume", value: 11 };
await weir.call("settings@1/set", changed, { signal: AbortSignal.timeout(5) });
const bytes = await weir.call<Uint8Array>("echo@1/echo", new Uint8Array([1]));
console.log(bytes.byteLength);

const subscription = await weir.subscribe<Changed>("settings.changed.>", ({ topic, payload }) => {
  console.log(topic.length, payload.key.length);
}, {
  onLost: (lost) => console.log(lost.toFixed()),
  onGap: ({ pattern, topic, lost }: Gap) => console.log(pattern.length, topic?.length, lost?.toFixed()),
  onEnded: ({ code }) => console.log(code.length),
});
await subscription.close();

const { delivered } = await weir.publish("player.started", { title: "a" }, { to: "other" });
console.log(delivered.toFixed());
const put: { id: string } | null = await weir.put("uploads", null, { untilDone: true, timeoutMs: 60_000 });
const job: Job<Changed> | null = await weir.take<Changed>("uploads");
await job?.done();

await weir.serve("clock@1", {
  now: async (params, { sender, signal }) => ({ to: sender, at: Date.now(), was: signal.aborted, params }),
  fail: () => {
    throw new WeirError("no-clock", "it stopped");
  },
});

try {
  await weir.call("settings@1/get", { key: "volume" });
} catch (error) {
  if (error instanceof WeirError) console.log(error.code, error.provider satisfies boolean);
}
off();
weir.close();
export { put, unknown };

import assert from "node:assert/strict";
import { test } from "node:test";

import { bytesQueue, contract, extension, operation, t, type Context, type Queue } from "../src/index.js";
import { Harness } from "../src/testing/harness.js";
import { greeter, greeterExtension } from "./greeter.js";

test("events come one after the other, with what was lost before them", async () => {
  const main = new Harness(greeterExtension());
  main.lose(3);
  assert.equal(await main.publish("people.new", "Ada"), 1);
  assert.equal(await main.publish("people.new", "Grace"), 1);
  assert.equal(await main.publish("other", "nobody"), 0);
  await main.advance(10);
  assert.deepEqual(
    main.published().map((event) => event.json()),
    [{ topic: "people.new", lost: 3, retained: false, payload: "Ada" }],
  );
  await main.advance(10);
  assert.deepEqual(
    main.published().map((event) => event.json()),
    [{ topic: "people.new", lost: 0, retained: false, payload: "Grace" }],
  );
});

test("beyond 256 the oldest events of a waiting handler are lost, and counted", async () => {
  const main = new Harness(greeterExtension());
  await main.publish("people.new", 0);
  for (let number = 1; number <= 300; number += 1) await main.publish("people.new", number);
  await main.advance(20);
  const [, second] = main.published().map((event) => event.json());
  assert.deepEqual(second, { topic: "people.new", lost: 44, retained: false, payload: 45 });
});

test("a retained value comes first", async () => {
  const main = new Harness(greeterExtension());
  main.retain("people.last", "Ada");
  await main.advance(10);
  assert.deepEqual(
    main.published().map((event) => event.json()),
    [{ topic: "people.last", lost: 0, retained: true, payload: "Ada" }],
  );
});

test("an event that does not fit is logged, and the next one is handled", async () => {
  const heard: number[] = [];
  const numbers = contract("numbers@1", "", { next: operation("Next.") });
  const main = new Harness(
    extension({ fulfills: [numbers], subscribes: ["only.numbers"] })
      .on(numbers.next, () => null)
      .onEvent("only.numbers", (_, { payload, topic }) => {
        assert.equal(topic, "only.numbers");
        if (typeof payload !== "number") throw new Error("this is no number");
        heard.push(payload);
      }),
  );
  await main.publish("only.numbers", "x");
  await main.publish("only.numbers", 7);
  assert.deepEqual(heard, [7]);
  assert.match(main.logged[0]!.message, /^an event was not handled: Error: this is no number/);
});

test("subscriptions at run time reach the handler of any event, until they end", async () => {
  const heard: string[] = [];
  const listens = contract("listens@1", "", {
    on: operation("Subscribes.", { args: t.string() }),
    off: operation("Unsubscribes.", { args: t.string() }),
  });
  const main = new Harness(
    extension({ fulfills: [listens], subscribes: ["news.>"] })
      .on(listens.on, (context, pattern) => (context.subscribe(pattern), null))
      .on(listens.off, (context, pattern) => (context.unsubscribe(pattern), null))
      .onAnyEvent((_, { topic }) => void heard.push(topic)),
  );
  await main.call(listens.on, "news.*");
  await main.publish("news.a", 1);
  await main.call(listens.off, "news.*");
  await main.publish("news.b", 1);
  assert.deepEqual(heard, ["news.a"]);
});

test("a job is done when its handler returns, and given back when it fails", async () => {
  const main = new Harness(greeterExtension());
  const done = await main.put(greeter.uploads, { file: "report" });
  const failed = await main.put(greeter.uploads, { file: "" });
  const last = await main.put(greeter.uploads, { file: "other" });
  await main.advance(0);
  assert.deepEqual(main.job(done), { state: "done", deliveries: 1 });
  assert.deepEqual(main.job(failed), { state: "dead", deliveries: 3 });
  assert.deepEqual(main.job(last), { state: "done", deliveries: 1 });
});

function taker(by: (context: Context, lines: Queue<Uint8Array>) => Promise<string>) {
  const lines = bytesQueue("lines");
  const takers = contract("takers@1", "", { take: operation("Takes.", { result: t.string() }) });
  const main = new Harness(
    extension({ fulfills: [takers], takes: [lines] }).on(takers.take, (context) =>
      by(context, lines).catch((error: Error) => error.message),
    ),
  );
  return {
    main,
    take: () => main.call(takers.take, {}),
    send: () => main.send(takers.take, {}),
    put: () => main.put(lines, new Uint8Array([1])),
  };
}

test("a job can be taken by hand, within a time", async () => {
  const { main, take, put } = taker(async (context, lines) => {
    const job = await context.take(lines, { timeoutMs: 50 });
    assert.deepEqual(main.job(job.id), { state: "in-hand", deliveries: 1 });
    job.done();
    return "taken";
  });
  assert.equal(await take(), "timed out");
  assert.equal(main.now, 50);
  const job = await put();
  assert.deepEqual(main.job(job), { state: "waiting", deliveries: 0 }, "nobody waits for it any more");
  assert.equal(await take(), "taken");
  assert.deepEqual(main.job(job), { state: "done", deliveries: 1 });
});

test("a signal ends the wait for a job", async () => {
  const abort = new AbortController();
  const { main, take, send, put } = taker(async (context, lines) => {
    await context.take(lines, { signal: abort.signal });
    return "taken";
  });
  const pending = await send();
  abort.abort(new Error("given up"));
  assert.equal(await pending.wait(), "given up");
  assert.equal(await take(), "given up");
  const job = await put();
  assert.deepEqual(main.job(job), { state: "waiting", deliveries: 0 });
});

test("a wait for a job that lost a race takes none once its handler has ended", async () => {
  const { main, take, put } = taker(async (context, lines) => {
    await Promise.race([context.take(lines), context.sleep(10)]);
    return "raced";
  });
  assert.equal(await take(), "raced");
  const job = await put();
  assert.deepEqual(main.job(job), { state: "waiting", deliveries: 0 });
});

test("a job that its handler neither finished nor gave back is given back", async () => {
  const { main, send, put } = taker(async (context, lines) => {
    const late = context.take(lines);
    await Promise.race([late, context.sleep(10)]);
    await context.sleep(10);
    return "forgot it";
  });
  const pending = await send();
  await main.advance(15);
  const job = await put();
  assert.deepEqual(main.job(job), { state: "in-hand", deliveries: 1 });
  assert.equal(await pending.wait(), "forgot it");
  assert.deepEqual(main.job(job), { state: "waiting", deliveries: 1 });
  assert.deepEqual(main.logged, []);
});

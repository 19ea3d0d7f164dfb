import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { WeirError } from "../weir.js";
import { Gateway, settled } from "./gateway.js";

let gateway, weir, connection;

beforeEach(async () => {
  gateway = new Gateway();
  ({ weir, connection } = await gateway.connect());
});

afterEach(() => weir.close());

/** Breaks the connection, and gives the next one, open. */
async function again() {
  connection.break();
  connection = (await gateway.next()).open();
}

test("a call is a request, and gives the result as it stands", async () => {
  const called = weir.call("device.info@1/memory");
  assert.deepEqual(await connection.answer({ total_kib: 7 }), { jsonrpc: "2.0", id: 1, method: "device.info@1/memory" });
  assert.deepEqual(await called, { total_kib: 7 });
});

test("options of a call go along", async () => {
  const called = weir.call("settings@1/get", { key: "volume" }, { timeoutMs: 500, provider: "other" });
  const { params, weir: extra } = await connection.answer(1);
  assert.deepEqual([params, extra], [{ key: "volume" }, { "timeout-ms": 500, provider: "other" }]);
  assert.equal(await called, 1);
});

test("bytes have a form of their own, both ways", async () => {
  const called = weir.call("echo@1/echo", new Uint8Array([0, 255, 128]));
  const { params } = await connection.answer({ $base64: "AP+A" });
  assert.deepEqual(params, { $base64: "AP+A" });
  assert.deepEqual(await called, new Uint8Array([0, 255, 128]));
});

test("params that are no object travel as the bytes of their JSON, both ways", async () => {
  const called = weir.call("echo@1/echo", "ä");
  const { params } = await connection.answer("ä");
  assert.deepEqual(params, { $base64: btoa('"\u00c3\u00a4"') });
  assert.equal(await called, "ä");
  const seen = [];
  const served = weir.serve("a@1", { b: (value) => seen.push(value) });
  await connection.answer(null);
  await served;
  connection.write({ id: 1, method: "a@1/b", params });
  connection.write({ id: 2, method: "a@1/b", params: { $base64: "AQ==" } });
  assert.deepEqual(seen, ["ä", new Uint8Array([1])]);
});

test("a call without params has none, and null is none", async () => {
  for (const params of [undefined, null]) {
    const called = weir.call("a@1/b", params);
    assert.ok(!("params" in (await connection.answer(1))));
    await called;
  }
});

test("what JSON cannot say fails at once, and nothing is sent", async () => {
  await assert.rejects(weir.call("echo@1/echo", 1n), TypeError);
  const called = weir.call("echo@1/echo");
  assert.equal((await connection.answer(null)).method, "echo@1/echo");
  await called;
});

test("an error has the word of Weir, or of the provider", async () => {
  const cases = [
    [{ code: -32002, message: "nobody", data: { code: "no-provider" } }, "no-provider", false],
    [{ code: -32010, message: "integer", data: { code: "wrong-type", provider: true } }, "wrong-type", true],
    [{ code: -32600, message: "odd" }, "failed", false],
  ];
  for (const [error, code, provider] of cases) {
    const called = weir.call("settings@1/set");
    connection.write({ id: (await connection.read()).id, error });
    await assert.rejects(called, (found) => {
      assert.ok(found instanceof WeirError);
      assert.deepEqual([found.code, found.provider, found.message], [code, provider, error.message]);
      return true;
    });
  }
});

test("a call under way at a break is rejected, and not repeated", async () => {
  const called = weir.call("settings@1/set", { key: "volume", value: 1 });
  await connection.read();
  await Promise.all([
    assert.rejects(called, { code: "connection-lost", message: /unknown whether `settings@1\/set` was carried out/ }),
    again(),
  ]);
  await settled();
  assert.deepEqual(connection.sent, []);
});

test("a call without a connection waits for one", async () => {
  connection.break();
  const called = weir.call("device.info@1/memory");
  connection = (await gateway.next()).open();
  await connection.answer("there");
  assert.equal(await called, "there");
});

test("a call without a connection waits no longer than its timeout", async () => {
  connection.break();
  const waiting = await gateway.next();
  await assert.rejects(weir.call("a@1/b", null, { timeoutMs: 5 }), { code: "timeout" });
  waiting.open();
  await settled();
  assert.deepEqual(waiting.sent, []);
});

test("a call that nobody answers ends, and the gateway hears of it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const called = weir.call("a@1/b", null, { timeoutMs: 50 });
  const { id } = await connection.read();
  t.mock.timers.tick(50);
  assert.equal(connection.sent.length, 0);
  t.mock.timers.tick(1000);
  await assert.rejects(called, { code: "timeout" });
  assert.deepEqual((await connection.read()).params, { id });
});

test("a signal gives up a call, and the gateway hears of it", async () => {
  const controller = new AbortController();
  const called = weir.call("a@1/b", null, { signal: controller.signal });
  const { id } = await connection.read();
  controller.abort(new Error("enough"));
  await assert.rejects(called, /enough/);
  assert.deepEqual(await connection.read(), { jsonrpc: "2.0", method: "rpc.cancel", params: { id } });
  connection.write({ id, result: "late" });
  await assert.rejects(weir.call("a@1/b", null, { signal: controller.signal }), /enough/);
});

test("every attempt asks for a fresh ticket", async () => {
  let number = 0;
  const other = gateway.client({ ticket: async () => `t/${++number}` });
  const first = await gateway.next();
  assert.equal(first.url, "ws://device:7410/v1/peers/app:page/rpc?ticket=t%2F1");
  first.break();
  assert.equal((await gateway.next()).url, "ws://device:7410/v1/peers/app:page/rpc?ticket=t%2F2");
  other.close();
});

test("without a ticket it tries again, and says why", async () => {
  const heard = [];
  let fails = true;
  const ticket = async () => {
    if (fails) throw new Error("403");
    return "t";
  };
  const other = gateway.client({ ticket });
  other.on("error", (error) => heard.push(error.message));
  await new Promise((resolve) => other.on("close", ({ reason }) => (heard.push(reason), resolve())));
  assert.deepEqual(heard, ["403", "403"]);
  fails = false;
  (await gateway.next()).open();
  assert.equal(other.state, "open");
  other.close();
});

test("a connection that fails is tried again, also if no close is told", async () => {
  const heard = [];
  weir.on("close", ({ code }) => heard.push(code));
  connection.socket.close = () => connection.break(1006);
  connection.socket.onerror({});
  (await gateway.next()).open();
  assert.deepEqual([heard, weir.state], [[1006], "open"]);
});

test("attempts wait longer and longer, up to the longest time", async () => {
  const waits = [];
  const other = gateway.client({ minDelay: 1, maxDelay: 8 });
  other.on("close", ({ retryInMs }) => waits.push(retryInMs));
  for (let attempt = 0; attempt < 6; attempt++) (await gateway.next()).break();
  other.close();
  const most = [2, 4, 8, 8, 8, 8];
  waits.slice(0, 6).forEach((wait, at) => assert.ok(wait >= most[at] / 2 && wait <= most[at], `${waits}`));
});

test("events reach the listeners of their pattern", async () => {
  const heard = [];
  const opened = [
    weir.subscribe("settings.changed.>", ({ topic, payload }) => heard.push(["a", topic, payload])),
    weir.subscribe("settings.changed.>", ({ topic, payload }) => heard.push(["b", topic, payload])),
  ];
  assert.deepEqual((await connection.answer({})).params, { pattern: "settings.changed.>" });
  const [first, second] = await Promise.all(opened);
  connection.event("settings.changed.>", "settings.changed.x", 1, 5);
  connection.event("other", "other", 1);
  assert.deepEqual(heard.splice(0), [["a", "settings.changed.x", 5], ["b", "settings.changed.x", 5]]);
  await first.close();
  connection.event("settings.changed.>", "settings.changed.x", 2, { $base64: "AQ==" });
  assert.deepEqual(heard, [["b", "settings.changed.x", new Uint8Array([1])]]);
  const closed = second.close();
  assert.equal((await connection.answer({})).method, "events.unsubscribe");
  await closed;
});

test("a listener that fails stops no other", async (t) => {
  t.mock.method(console, "error", () => {});
  const heard = [];
  const first = weir.subscribe("a", () => { throw new Error("mine"); });
  const second = weir.subscribe("a", (event) => heard.push(event.sequence));
  await connection.answer({});
  await Promise.all([first, second]);
  connection.event("a", "a", 1);
  assert.deepEqual(heard, [1]);
  assert.equal(console.error.mock.callCount(), 1);
});

test("a subscription that is refused fails, and is not asked for again", async () => {
  const subscribed = weir.subscribe("secret", () => {});
  const error = { code: -32011, message: "no", data: { code: "permission-denied" } };
  connection.write({ id: (await connection.read()).id, error });
  await assert.rejects(subscribed, { code: "permission-denied" });
  await again();
  await settled();
  assert.deepEqual(connection.sent, []);
});

test("after a break it subscribes again, and tells of the gap", async () => {
  const heard = [];
  const subscribed = weir.subscribe("a.>", ({ topic, sequence }) => heard.push(`${topic} ${sequence}`), {
    onGap: (gap) => heard.push(gap),
    onLost: (lost) => heard.push(`lost ${lost}`),
  });
  await connection.answer({});
  await subscribed;
  for (const [topic, sequence] of [["a.x", 5], ["a.y", 9], ["a.z", 1]]) connection.event("a.>", topic, sequence);
  connection.write({ method: "events.lost", params: { pattern: "a.>", lost: 3 } });
  heard.length = 0;
  await again();
  assert.equal((await connection.answer({})).method, "events.subscribe");
  await settled();
  assert.deepEqual(heard.splice(0), [{ pattern: "a.>" }]);
  for (const [topic, sequence] of [["a.x", 8], ["a.y", 2], ["a.z", 2], ["a.x", 10], ["a.new", 4]]) {
    connection.event("a.>", topic, sequence);
  }
  const gap = { pattern: "a.>", topic: "a.x", lost: 2 };
  assert.deepEqual(heard.splice(0), [gap, "a.x 8", "a.y 2", "a.z 2", "a.x 10", "a.new 4"]);
  connection.write({ method: "events.lost", params: { pattern: "a.>", lost: 3 } });
  assert.deepEqual(heard, ["lost 3"]);
});

test("a break while it subscribes is no end of it", async () => {
  const subscribed = weir.subscribe("a", () => {}, { onGap: () => assert.fail("there was nothing before") });
  await connection.read();
  await again();
  await connection.answer({});
  assert.equal((await subscribed).pattern, "a");
});

test("a subscription is over when the operator takes back the grant", async () => {
  const over = [];
  const subscribed = weir.subscribe("a", () => {}, { onEnded: (error) => over.push(error.code) });
  await connection.answer({});
  await subscribed;
  connection.write({ method: "events.ended", params: { pattern: "a" } });
  assert.deepEqual(over, ["permission-denied"]);
  await again();
  await settled();
  assert.deepEqual(connection.sent, []);
});

test("events are published, and jobs are put", async () => {
  const published = weir.publish("a.b", { x: 1 }, { to: "other", timeoutMs: 9 });
  const { method, params, weir: extra } = await connection.answer({ delivered: 1, shed: 0, refused: 0 });
  assert.deepEqual([method, params, extra], ["events.publish", { topic: "a.b", payload: { x: 1 }, to: "other" }, { "timeout-ms": 9 }]);
  assert.equal((await published).delivered, 1);
  const put = weir.put("uploads", 7, { untilDone: true });
  assert.deepEqual((await connection.answer(null)).params, { queue: "uploads", payload: 7, "until-done": true });
  assert.equal(await put, null);
});

test("a job is taken, and done", async () => {
  const taken = weir.take("uploads");
  assert.deepEqual((await connection.answer({ job: 4, id: "9", deliveries: 1, sender: "a", payload: 3 })).params, { queue: "uploads" });
  const job = await taken;
  assert.deepEqual([job.id, job.payload], ["9", 3]);
  const done = job.done();
  const { method, params } = await connection.answer(null);
  assert.deepEqual([method, params], ["queues.done", { job: 4 }]);
  await done;
  const none = weir.take("uploads", { timeoutMs: 1 });
  await connection.answer(null);
  assert.equal(await none, null);
});

test("a job of a connection that is gone cannot be finished on another", async () => {
  const taken = weir.take("uploads");
  await connection.answer({ job: 1, id: "9", deliveries: 1, sender: "a", payload: 3 });
  const job = await taken;
  await again();
  await assert.rejects(job.done(), { code: "connection-lost" });
  assert.deepEqual(connection.sent, []);
});

test("a job that comes after its taker gave up goes back", async () => {
  const controller = new AbortController();
  const taken = weir.take("uploads", { signal: controller.signal });
  const { id } = await connection.read();
  controller.abort();
  await assert.rejects(taken, { name: "AbortError" });
  await connection.read();
  connection.write({ id, result: { job: 2, id: "9", deliveries: 1, sender: "a", payload: 3 } });
  assert.deepEqual(await connection.read(), { jsonrpc: "2.0", method: "queues.return", params: { job: 2 } });
});

test("requests are answered by value or by error", async () => {
  const seen = [];
  const served = weir.serve("clock@1", {
    now: async (params, { sender, timeoutMs }) => (seen.push(params, sender, timeoutMs), { iso: "now" }),
    fail: () => { throw new WeirError("no-clock", "stopped"); },
    crash: () => { throw new Error("mine"); },
    bytes: () => new Uint8Array([1]),
    nothing: () => undefined,
  });
  const { method, params } = await connection.answer(null);
  assert.deepEqual([method, params.contract, params.operations.length], ["contracts.serve", "clock@1", 5]);
  await served;
  const ask = async (id, operation) => {
    connection.write({ id, method: `clock@1/${operation}`, params: { x: 1 }, weir: { sender: "player", "timeout-ms": 90 } });
    return connection.read();
  };
  assert.deepEqual(await ask(1, "now"), { jsonrpc: "2.0", id: 1, result: { iso: "now" } });
  assert.deepEqual(seen, [{ x: 1 }, "player", 90]);
  assert.deepEqual((await ask(2, "fail")).error, { code: -32010, message: "stopped", data: { code: "no-clock" } });
  assert.deepEqual((await ask(3, "crash")).error, { code: -32010, message: "mine", data: { code: "failed" } });
  assert.deepEqual((await ask(4, "bytes")).result, { $base64: "AQ==" });
  assert.equal((await ask(5, "nothing")).result, null);
  assert.equal((await ask(6, "unknown")).error.data.code, "failed");
});

test("a contract is served again after a break, and answers stay on their connection", async () => {
  const signals = [];
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const served = weir.serve("a@1", { wait: (_, { signal }) => (signals.push(signal), finished), quick: () => 1 });
  await connection.answer(null);
  await served;
  connection.write({ id: 1, method: "a@1/wait" });
  connection.write({ id: 2, method: "a@1/wait" });
  connection.write({ method: "rpc.cancel", params: { id: 1 } });
  assert.deepEqual(signals.map((signal) => signal.aborted), [true, false]);
  await again();
  assert.ok(signals[1].aborted);
  assert.equal((await connection.answer(null)).method, "contracts.serve");
  finish("too late");
  await settled();
  assert.deepEqual(connection.sent, []);
  connection.write({ id: 1, method: "a@1/quick" });
  assert.deepEqual(await connection.read(), { jsonrpc: "2.0", id: 1, result: 1 });
});

test("its state and its events say what it does", async () => {
  const heard = [];
  weir.on("open", ({ again }) => heard.push(`open ${again}`));
  const off = weir.on("close", ({ code, reason }) => heard.push(`close ${code} ${reason}`));
  weir.on("notification", ({ method, params }) => heard.push(`${method} ${params}`));
  connection.write({ method: "device.onNameChanged", params: "tv" });
  connection.break(1001, "stopping");
  assert.equal(weir.state, "waiting");
  connection = await gateway.next();
  assert.equal(weir.state, "connecting");
  connection.open();
  off();
  connection.break();
  assert.deepEqual(heard, ["device.onNameChanged tv", "close 1001 stopping", "open true"]);
});

test("a client that is closed ends what waits, and stays closed", async () => {
  const ended = [];
  const subscribed = weir.subscribe("a", () => {}, { onEnded: ({ code }) => ended.push(code) });
  await connection.answer({});
  const subscription = await subscribed;
  const called = weir.call("a@1/b");
  weir.close();
  weir.close();
  await assert.rejects(called, { code: "connection-lost" });
  await assert.rejects(weir.call("a@1/b"), { code: "closed" });
  await assert.rejects(weir.subscribe("a", () => {}), { code: "closed" });
  await subscription.close();
  assert.deepEqual([ended, weir.state, connection.closed], [["closed"], "closed", true]);
});

test("what waits for a connection ends when the client is closed", async () => {
  connection.break();
  const waiting = [weir.call("a@1/b"), weir.subscribe("a", () => {}), weir.serve("a@1", {})];
  weir.close();
  for (const one of waiting) await assert.rejects(one, { code: "closed" });
});

test("without a WebSocket class it says so", () => {
  assert.throws(() => gateway.client({ WebSocket: undefined }), /there is no WebSocket here/);
});

import assert from "node:assert/strict";
import { test } from "node:test";

import { Failure, WeirError, contract, extension, operation, t } from "../src/index.js";
import { Harness } from "../src/testing/harness.js";
import { greeter, greeterExtension, storage } from "./greeter.js";

function harness(): Harness {
  const main = new Harness(greeterExtension());
  main.fake(storage.get, ({ key }) => (key === "loudly" ? "HELLO" : null));
  return main;
}

async function failure(call: Promise<unknown>): Promise<WeirError> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(outcome instanceof WeirError, `this is no WeirError: ${outcome}`);
  return outcome;
}

test("a handler answers, calls and publishes", async () => {
  const main = harness();
  assert.deepEqual(await main.call(greeter.greet, { name: "Ada", how: "loudly" }), { text: "HELLO Ada", number: 1 });
  assert.deepEqual(await main.call(greeter.names, {}), ["Ada"]);
  const [greeted] = main.published();
  assert.equal(greeted?.topic, "greeter.greeted");
  assert.equal(greeted?.json(), "Ada");
});

test("an error of the handler reaches the caller", async () => {
  const error = await failure(harness().call(greeter.greet, { name: "" }));
  assert.ok(error instanceof Failure);
  assert.equal(error.code, "no-name");
  assert.equal(error.message, "there is nobody to greet");
});

test("arguments that do not fit never reach the handler", async () => {
  const main = harness();
  for (const [payload, says] of [
    ["{}", "`$.name` is missing"],
    ['{"name":1}', "`$.name` is no text"],
    ['{"name":"a","x":1}', "`$.x` is unknown"],
    ["{", "no JSON"],
  ] as const) {
    const pending = await main.sendBytes("greeter@1", "greet", new TextEncoder().encode(payload));
    const error = await failure(pending.wait());
    assert.equal(error.code, "invalid-argument");
    assert.ok(error.message.includes(says), error.message);
  }
});

test("without a payload the arguments are empty", async () => {
  const pending = await harness().sendBytes("greeter@1", "names", new Uint8Array());
  assert.equal(new TextDecoder().decode(await pending.wait()), "[]");
});

test("an unexpected exception is logged with its function, and the caller is not told it", async () => {
  const main = harness();
  const error = await failure(main.call(greeter.greet, { name: "bug" }));
  assert.equal(error.code, "unexpected");
  assert.ok(!error.message.includes("cheese"));
  const [line] = main.logged;
  assert.equal(line?.level, "error");
  assert.match(line!.message, /out of cheese[\s\S]*fail_unexpectedly/);
  assert.deepEqual(await main.call(greeter.names, {}), [], "the extension goes on");
});

test("two requests that wait are under way at once", async () => {
  const main = harness();
  const one = await main.send(greeter.greetSlowly, 1000);
  const other = await main.send(greeter.greetSlowly, 1000);
  await main.advance(999);
  assert.ok(!one.isAnswered && !other.isAnswered);
  await main.advance(1);
  assert.ok(one.isAnswered && other.isAnswered);
  assert.equal(await other.wait(), "hello after 1000 ms");
});

test("a handler past its deadline ends at its next wait", async () => {
  let outcome: unknown;
  const waits = contract("waits@1", "", { wait: operation("Waits.", {}) });
  const main = new Harness(
    extension({ fulfills: [waits] }).on(waits.wait, async (context) => {
      assert.equal(context.remainingMs, 5000);
      outcome = await context.sleep(60_000).catch((error: unknown) => error);
      assert.ok(context.signal.aborted);
      return null;
    }),
  );
  assert.equal((await failure(main.call(waits.wait, {}))).case, "timeout");
  await main.advance(0);
  assert.equal((outcome as WeirError).case, "timeout");
  assert.equal(main.now, 5000);
});

test("a call has at most the time left for its request, and its deadline is its own otherwise", async () => {
  const main = harness();
  main.fake(storage.get, async () => {
    await main.sleep(60_000);
    return null;
  });
  const pending = await main.send(greeter.greet, { name: "Ada" }, { timeoutMs: 100 });
  assert.equal(main.callsUnderWay, 1);
  assert.equal((await failure(pending.wait())).case, "timeout");
  assert.equal(main.now, 100);
});

test("an answer that is too large becomes an error", async () => {
  const main = harness();
  main.messageSize(8);
  assert.equal((await failure(main.call(greeter.echo, new Uint8Array(9)))).code, "too-large");
  assert.equal((await main.call(greeter.echo, new Uint8Array(8))).length, 8);
});

test("a contract that the manifest lacks is refused", async () => {
  const other = contract("other@1", "", { ask: operation("Asks.") });
  const asks = contract("asks@1", "", { ask: operation("Asks.", { result: t.string() }) });
  const main = new Harness(
    extension({ fulfills: [asks] }).on(asks.ask, async (context) => {
      const error = await context.call(other.ask, {}).catch((error: unknown) => error);
      return (error as WeirError).message;
    }),
  );
  assert.match(await main.call(asks.ask, {}), /^permission denied: contract `other@1`: `wants`/);
});

test("an answer that is not what the contract says has the code `invalid-answer`", async () => {
  const main = harness();
  main.fakeBytes("storage@1", "get", () => new TextEncoder().encode("1"));
  assert.equal((await failure(main.call(greeter.greet, { name: "Ada" }))).code, "invalid-answer");
});

test("a request that was sent can be cancelled, by hand or by a signal", async () => {
  const outcomes: unknown[] = [];
  const cancels = contract("cancels@1", "", { go: operation("Goes.") });
  const main = new Harness(
    extension({ fulfills: [cancels], wants: [storage] }).on(cancels.go, async (context) => {
      const sent = context.send(storage.get, { key: "a" });
      const abort = new AbortController();
      const call = context.call(storage.get, { key: "b" }, { signal: abort.signal });
      sent.cancel();
      abort.abort();
      for (const answer of [sent.answer, call]) outcomes.push(await answer.catch((error: Error) => error.name));
      return null;
    }),
  );
  main.fake(storage.get, () => new Promise(() => {}));
  await main.call(cancels.go, {});
  assert.deepEqual(outcomes, ["AbortError", "AbortError"]);
  assert.equal(main.callsUnderWay, 0);
});

test("faults of the manifest are listed all at once", () => {
  const unfit = greeterExtension();
  unfit.manifest.subscribes = [];
  unfit.manifest.takes = [];
  unfit.on(greeter.names, () => []);
  assert.throws(
    () => new Harness(unfit),
    (error: Error) => {
      for (const fault of [
        "`greeter@1` `names` has two handlers",
        "`people.*` has a handler, but `subscribes` does not cover it",
        "`takes` lacks `uploads`",
      ]) {
        assert.ok(error.message.includes(fault), error.message);
      }
      return true;
    },
  );
  assert.throws(
    () => new Harness(extension({ id: "Bad Id", publishes: ["a..b"] })),
    /`id` is `Bad Id`.*`publishes` has `a..b`/,
  );
  assert.throws(() => new Harness(extension({ fulfills: [greeter] })), /`greeter@1` `greet` has no handler/);
});

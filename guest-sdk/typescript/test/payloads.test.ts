import assert from "node:assert/strict";
import { test } from "node:test";

import { Failure, contract, extension, operation, t } from "../src/index.js";
import { Harness } from "../src/testing/harness.js";
import { Timers } from "../src/timers.js";

const kept = contract("kept@1", "Keeps what it gets.", {
  number: operation("A number.", { args: t.object({ value: t.number() }), result: t.number() }),
  any: operation("Anything.", { args: t.any(), result: t.any() }),
  inherited: operation("Names of every object.", {
    args: t.object({ toString: t.string(), constructor: t.optional(t.string()) }),
    result: t.string(),
  }),
  open: operation("An open object.", {
    args: t.object({ a: t.integer(), inner: t.optional(t.array(t.nullable(t.object({ b: t.integer() })))) }),
    result: t.any(),
  }),
  map: operation("A map.", { args: t.record(t.union(t.string(), t.object({ a: t.string() }))), result: t.any() }),
  sleep: operation("Sleeps.", { result: t.string() }),
  say: operation("Says.", { args: t.string(), result: t.string() }),
});

let sleepFor = 0;
let seen: any;

function keeper(): Harness {
  return new Harness(
    extension({ fulfills: [kept] })
      .on(kept.number, (_, { value }) => (value === 0 ? NaN : value === 1 ? -Infinity : value))
      .on(kept.any, (_, args) => ((seen = args), args === "bad" ? { deep: [null, NaN] } : null))
      .on(kept.inherited, (_, { toString, constructor }) => `${toString} ${constructor}`)
      .on(kept.open, (_, args) => ((seen = args), null))
      .on(kept.map, (_, args) => ((seen = args), null))
      .on(kept.sleep, async (context) => (await context.sleep(sleepFor), "slept"))
      .on(kept.say, (_, text) => text),
  );
}

async function answer(main: Harness, operation: string, payload: string): Promise<string> {
  const pending = await main.sendBytes("kept@1", operation, new TextEncoder().encode(payload));
  return pending.wait().then(
    (bytes) => new TextDecoder().decode(bytes),
    (error: Failure) => `${error.code}: ${error.message}`,
  );
}

test("no time is too long, too early, or no number", async () => {
  const main = keeper();
  for (const [ms, outcome] of [
    [NaN, "slept"],
    [-Infinity, "slept"],
    [Infinity, "timeout"],
    [1e20, "timeout"],
  ] as const) {
    sleepFor = ms;
    const said = await main.call(kept.sleep, {}).catch((error: Failure) => error.code);
    assert.equal(said, outcome, String(ms));
  }
  for (const at of [NaN, Infinity, -Infinity, 1e20, -1]) {
    const timers = new Timers();
    timers.at(at, () => {});
    // What the loop asks the host's clock for.
    assert.ok(BigInt.asUintN(64, BigInt(timers.next()! * 1e6)) === BigInt(timers.next()! * 1e6), String(at));
  }
});

test("a number that is not finite is refused on its way in, and never written as null", async () => {
  const main = keeper();
  assert.match(await answer(main, "number", '{"value":1e400}'), /^invalid-argument: `\$\.value` is Infinity/);
  assert.match(await answer(main, "any", '{"deep":[{"a":-1e400}]}'), /^invalid-argument: `\$` has a number/);
  for (const [operation, payload] of [
    ["number", '{"value":0}'],
    ["number", '{"value":1}'],
    ["any", '"bad"'],
  ] as const) {
    assert.match(await answer(main, operation, payload), /^unexpected: /);
  }
  assert.equal(main.logged.length, 3);
  assert.match(main.logged[0]!.message, /the value is NaN, which JSON cannot say/);
  assert.match(main.logged[2]!.message, /`1` is NaN, which JSON cannot say/);
  await assert.rejects(main.call(kept.any, { a: NaN }), TypeError);
  assert.equal(await answer(main, "any", '{"a":null}'), "null");
});

test("what every object inherits is no field", async () => {
  const main = keeper();
  assert.match(await answer(main, "inherited", "{}"), /^invalid-argument: `\$\.toString` is missing/);
  assert.equal(await answer(main, "inherited", '{"toString":"a"}'), '"a undefined"');
  assert.equal(await answer(main, "inherited", '{"toString":"a","constructor":"b"}'), '"a b"');
});

test("a handler gets the fields of its type alone, and no prototype from outside", async () => {
  const main = keeper();
  await answer(main, "open", '{"a":1,"b":2,"__proto__":{"admin":true},"inner":[null,{"b":3,"c":4}]}');
  assert.deepEqual(seen, { a: 1, inner: [null, { b: 3 }] });
  await answer(main, "map", '{"x":{"a":"b","__proto__":{}},"__proto__":"c","\\u005f_proto__":"d","y":"z"}');
  assert.deepEqual(seen, { x: { a: "b" }, y: "z" });
  await answer(main, "any", '[{"__proto__":{"admin":true},"a":{"__proto__":1}}]');
  assert.deepEqual(seen, [{ a: {} }]);
  const deep = "[".repeat(5000) + "]".repeat(5000);
  assert.equal(await answer(main, "any", deep), "null");
});

test("half of a surrogate pair is replaced in JSON, which other languages refuse", async () => {
  const main = keeper();
  const said = await answer(main, "say", '"a\\ud800 \\\\ud800 \\ud83d\\ude00"');
  assert.equal(said, '"a\uFFFD \\\\ud800 \u{1F600}"');
});

import assert from "node:assert/strict";
import { test } from "node:test";

import { bytesOperation, bytesQueue, bytesTopic, contract, extension, operation, t, type Infer } from "../src/index.js";
import { isContract, isId, isOperation, isPattern } from "../src/names.js";
import { greeter, greeterExtension } from "./greeter.js";

test("the sections describe the extension and its contracts", () => {
  const { manifest, contracts } = greeterExtension().sections({ id: "none", version: "1.2.3" });
  assert.deepEqual(manifest, {
    schema: 1,
    id: "greeter",
    version: "1.2.3",
    fulfills: ["greeter@1"],
    requires: ["storage@1"],
    wants: [],
    publishes: ["greeter.greeted", "greeter.heard"],
    subscribes: ["people.*"],
    puts: [],
    takes: ["uploads"],
    grants: { dirs: [], env: [], net: [] },
  });
  const [greeter, storage] = contracts
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(storage["x-role"], "caller");
  assert.deepEqual(greeter.methods[0], {
    name: "greeter@1/greet",
    description: "Greets a person by name.",
    paramStructure: "by-name",
    "x-arguments": "Name",
    "x-strict": true,
    params: [
      {
        name: "name",
        description: "The person's name.",
        required: true,
        schema: { description: "The person's name.", type: "string" },
      },
      { name: "how", required: false, schema: { enum: ["kindly", "loudly"] } },
    ],
    result: { name: "Greeting", schema: { $ref: "#/components/schemas/Greeting" } },
    errors: [{ code: -32010, message: "no-name", data: "There is nobody to greet." }],
  });
  assert.deepEqual(
    greeter.methods.map(({ name }: { name: string }) => name),
    ["greeter@1/greet", "greeter@1/greet-slowly", "greeter@1/names", "greeter@1/echo"],
  );
  assert.deepEqual(greeter.methods[1]["x-argument"], { type: "integer" });
  assert.equal(greeter.methods[3]["x-bytes"], true);
  assert.deepEqual(greeter["x-topics"], [
    { name: "greeter.greeted", description: "Names, as they are greeted.", payload: { type: "string" } },
  ]);
  assert.deepEqual(greeter["x-queues"], [{ name: "uploads", job: { $ref: "#/components/schemas/Upload" } }]);
  assert.deepEqual(Object.keys(greeter.components.schemas), ["Greeting", "Upload"]);
});

test("a type says the place of what does not fit", () => {
  const Level = t.object("Level", {
    of: t.record(t.array(t.integer({ minimum: 1, maximum: 9 }), { maxItems: 2 })),
    note: t.optional(t.nullable(t.string({ maxLength: 2 }))),
  });
  const fits: Infer<typeof Level> = { of: { a: [1, 9] }, note: null };
  assert.equal(Level.fault(fits, "$"), undefined);
  for (const [value, fault] of [
    [{ of: { a: [1, 10] } }, "`$.of.a[1]` is 10, over the most, 9"],
    [{ of: { a: [1, 1, 1] } }, "`$.of.a` has 3 items, over the most, 2"],
    [{ of: { a: [1.5] } }, "`$.of.a[0]` is no whole number"],
    [{ of: [] }, "`$.of` is no object"],
    [{}, "`$.of` is missing"],
    [{ of: {}, note: "äöü" }, "`$.note` has 3 characters, over the most, 2"],
    [null, "`$` is no object"],
  ] as const) {
    assert.equal(Level.fault(value, "$"), fault);
  }
  assert.equal(t.union(t.string(), t.boolean()).fault(1, "$"), "`$` fits none of its types");
  assert.equal(t.words("a", "b").fault("c", "$"), "`$` is none of `a`, `b`");
});

test("the compiler refuses a handler that does not fit its contract", () => {
  const typed = extension({});
  // @ts-expect-error: an argument that the contract does not have
  typed.on(greeter.greet, (_, { surname }) => ({ text: String(surname), number: 1 }));
  // @ts-expect-error: a result that is not the contract's
  typed.on(greeter.greet, (_, { name }) => name);
  // @ts-expect-error: a word that the contract does not have
  typed.on(greeter.greet, (_, { how }) => ({ text: how === "softly" ? "" : "hello", number: 1 }));
  assert.equal(typed.served.length, 3);
});

test("names follow the rules of Main", () => {
  const long = (length: number) => "a".repeat(length);
  for (const [fits, good, bad] of [
    [isId, ["device-info2", "main", long(64)], ["", "A", "1a", "a_b", "a b", "a\n", long(65)]],
    [
      isContract,
      ["a@0", "device.info@1", "x-1.y@65535", `${long(126)}@1`],
      ["", "a", "a@", "a@01", "a@x", "a@+1", "a..b@1", "a.@1", "a@1@2", "a@65536", ".@1", "A@1", `${long(127)}@1`],
    ],
    [isOperation, ["get_All-2.x", "~!", long(128)], ["", "a b", "a/b", "ä", "a\u007f", long(129)]],
    [
      isPattern,
      ["*", ">", "a.*.b", "settings.changed.>", "A_b-1", "a.".repeat(15) + ">", long(256)],
      ["", ".", "a.", ".a", "a..b", "a.>.b", "a>", ">a", "**", "*a", "a b", "a.".repeat(16) + ">", long(257)],
    ],
  ] as const) {
    for (const name of good) assert.ok(fits(name), `${fits.name} ${name}`);
    for (const name of bad) assert.ok(!fits(name), `${fits.name} ${name}`);
  }
});

test("what Main could not read is refused at the build", () => {
  const described = (members: Parameters<typeof contract>[2]) =>
    extension({ wants: [contract("asked@1", "", members)] }).sections({ id: "asker", version: "1.0.0" }).contracts;
  const one = t.object("Same", { a: t.string() });
  const other = t.object("Same", { a: t.integer() });
  assert.throws(
    () => described({ a: operation("", { result: one }), b: operation("", { result: t.array(other) }) }),
    /two types are called `Same`/,
  );
  const again = t.object("Same", { a: t.string() }).doc("The same.");
  const [first, second, third] = [one, again, one].map((result) => operation("", { result }));
  described({ first: first!, second: second!, third: third! });
  for (const make of [
    () => t.integer({ minimum: 0.5 }),
    () => t.integer({ maximum: 1e20 }),
    () => t.number({ minimum: NaN }),
    () => t.string({ minLength: -1 }),
    () => t.array(t.any(), { maxItems: 1.5 }),
  ]) {
    assert.throws(make, /is no bound of this type/);
  }
  assert.throws(() => t.object("My name", {}), /`My name` is no name of a type/);
  assert.throws(() => described({ a: operation("", { result: t.words("a", "a") }) }), /`a` is there twice/);
  assert.throws(
    () =>
      described({
        a: bytesOperation("", { name: "a b" }),
        b: bytesOperation("", { name: "c" }),
        c: bytesOperation(""),
        d: bytesTopic("a..b"),
        e: bytesQueue("Q"),
      }),
    /`a b` is no name of an operation; the operation `c` is there twice; `a\.\.b` .* a topic; `Q` .* a queue/,
  );
  assert.throws(() => extension({ wants: ["a@01"] }).sections({ id: "a", version: "1.0.0" }), /`wants` has `a@01`/);
  const listens = extension({ subscribes: ["a.>"] }).onEvent("a.".repeat(16) + "b", () => {});
  assert.throws(() => listens.sections({ id: "a", version: "1" }), /is no topic or pattern/);
  const empty = contract("empty@1", "", {});
  assert.throws(() => extension({ fulfills: [empty, empty] }).sections({ id: "a", version: "1" }), /described twice/);
  const wants = Array.from({ length: 65 }, (_, number) => contract(`empty@${number}`, "", {}));
  assert.throws(() => extension({ wants }).sections({ id: "a", version: "1" }), /65 contracts, of at most 64/);
  assert.match(described({ a: bytesOperation("x".repeat(60_000)) }), /xxx/);
  assert.throws(
    () => described({ a: bytesOperation("ä".repeat(33_000)) }),
    /the descriptions of the contracts take 66\d\d\d bytes, of at most 65536/,
  );
});

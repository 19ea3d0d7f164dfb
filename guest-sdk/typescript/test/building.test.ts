import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { BuildError, build } from "../src/build/build.js";
import { withLessMemory } from "../src/build/engine.js";
import { withSection } from "../src/build/sections.js";
import { Timers, installTimers } from "../src/timers.js";

test("a section stands at the end of a component, with its lengths", () => {
  const component = Uint8Array.of(0, 0x61, 0x73, 0x6d, 13, 0, 1, 0);
  const described = withSection(component, "ab", new Uint8Array(300).fill(7));
  // Custom section; 303 = 0x2f + 2 × 128 bytes; the name has 2.
  assert.deepEqual([...described.slice(8, 15)], [0, 0xaf, 2, 2, 0x61, 0x62, 7]);
  assert.equal(described.length, 8 + 3 + 303);
  const module = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
  assert.ok(WebAssembly.validate(Buffer.from(withSection(module, "x", new Uint8Array(3)))));
});

test("the engine of componentize-js gets less memory, and another engine is refused", () => {
  const path = new URL(
    "../lib/starlingmonkey_embedding.wasm",
    import.meta.resolve("@bytecodealliance/componentize-js"),
  );
  const engine = readFileSync(path);
  const patched = withLessMemory(engine);
  assert.equal(patched.length, engine.length);
  const changed = engine.reduce((count, byte, at) => count + (byte === patched[at] ? 0 : 1), 0);
  assert.ok(changed > 0 && changed < 30, `${changed} bytes are changed`);
  assert.throws(() => withLessMemory(patched), /is not that of version 0\.23\.0/);
});

test("timers run in the order of their times, and not after they were cleared", () => {
  const timers = new Timers();
  const ran: string[] = [];
  const failures: unknown[] = [];
  const own = { setTimeout, setInterval, clearTimeout, clearInterval };
  let now = 0;
  installTimers(
    timers,
    () => now,
    (thrown) => failures.push(thrown),
  );
  try {
    setTimeout((word: string) => ran.push(word), 20, "late");
    setTimeout(() => ran.push("soon"), 10);
    clearTimeout(setTimeout(() => ran.push("never"), 5));
    setTimeout(() => {
      throw new Error("out of cheese");
    }, 15);
    const every = setInterval(() => {
      ran.push(`at ${now}`);
      if (now === 14) clearInterval(every);
    }, 7);
    while (timers.next() !== undefined) {
      now = timers.next()!;
      timers.fire(now);
    }
  } finally {
    Object.assign(globalThis, own);
  }
  assert.deepEqual(ran, ["at 7", "soon", "at 14", "late"]);
  assert.match(String(failures), /out of cheese/);
});

test("random numbers and a clock at the top level are refused with their line", async () => {
  const directory = mkdtempSync(join(tmpdir(), "weir-js-test-"));
  try {
    for (const call of [
      "Math.random()",
      "crypto.getRandomValues(new Uint8Array(4))",
      "crypto.randomUUID()",
      "performance.now()",
    ]) {
      const entry = join(directory, "extension.ts");
      writeFileSync(entry, `interface Removed {\n  line: string;\n}\nexport default ${call};\n`);
      await assert.rejects(build({ entry, out: join(directory, "x.wasm") }), (error) => {
        assert.ok(error instanceof BuildError);
        assert.ok(error.message.includes(`\`${call.split("(")[0]}\` at the top level`), error.message);
        assert.match(error.message, /call it in `onStart` or in a handler\n.*extension\.ts:4:/);
        return true;
      });
    }
    assert.ok(Math.random() < 1 && crypto.randomUUID().length === 36 && performance.now() > 0);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

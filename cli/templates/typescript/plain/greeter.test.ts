// The functions alone, without Main.

import assert from "node:assert/strict";
import { test } from "node:test";
import { greeter } from "./greeter.js";

test("greets by name", () => {
  assert.equal(greeter.greet("Ada"), "hello, Ada");
});

test("nobody is not greeted", () => {
  assert.throws(() => greeter.greet(""), (error) => error === "nobody");
});

// The extension without Main.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Harness } from "weir-sdk/testing";
import { greeter } from "./contract.js";
import extension from "./extension.js";

test("greets by name and publishes it", async () => {
  const main = new Harness(extension);

  const greeting = await main.call(greeter.greet, { name: "Ada" });

  assert.deepEqual(greeting, { text: "hello, Ada", number: 1 });
  assert.equal(main.published()[0]?.json(), "Ada");
});

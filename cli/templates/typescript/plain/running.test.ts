// The component in a real Main. `weir test` starts it, and says where the command is.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const weir = process.env.WEIR ?? "";
const skip = weir === "";

function greet(name: string) {
  const call = ["call", "{{name}}@1", "greet", JSON.stringify({ name })];
  return spawnSync(weir, call, { encoding: "utf8" });
}

test("the running component greets by name", { skip }, () => {
  assert.equal(greet("Grace").stdout, '"hello, Grace"');
});

test("a greeting needs a name", { skip }, () => {
  assert.equal(greet("").stderr, "error: nobody: nobody\n");
});

// The extension in a real Main. `weir test` starts it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const weir = process.env.WEIR;

function call(args: string) {
  return spawnSync(weir!, ["call", "{{name}}@1", "greet", args], { encoding: "utf8" });
}

test("the running extension greets by name", { skip: weir === undefined }, () => {
  assert.equal(JSON.parse(call('{"name":"Grace"}').stdout).text, "hello, Grace");
});

test("a greeting needs a name", { skip: weir === undefined }, () => {
  assert.match(call('{"name":""}').stderr, /there is nobody to greet/);
});

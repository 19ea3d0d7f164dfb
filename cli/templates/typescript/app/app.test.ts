// Tests of the app: alone, and beside the Main that `weir test` starts.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { shown } from "./app.js";

const weir = process.env.WEIR;

test("a text stands behind its sender", () => {
  assert.equal(shown("main", "hello"), "main says hello");
});

test("the app shows a text that is published", { skip: weir === undefined }, async () => {
  const app = spawn(process.execPath, ["dist/app.js"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const line = once(app.stdout, "data");
    const publish = () => String(execFileSync(weir!, ["publish", "{{name}}.show", '"hello"']));
    const begun = Date.now();
    while (!publish().includes("delivered to 1 ")) {
      // It has not subscribed yet.
      assert.ok(Date.now() - begun < 10_000, "the app does not subscribe");
      await setTimeout(50);
    }
    assert.equal(String((await line)[0]), "main says hello\n");
  } finally {
    app.kill();
  }
});

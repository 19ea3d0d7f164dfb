// The server in a real Main. `weir test` starts it, and says where the gateway is.

import assert from "node:assert/strict";
import { test } from "node:test";

const gateway = process.env.WEIR_HTTP_ADDRESS;
const skip = gateway === undefined;

test("the running server greets", { skip }, async () => {
  const answer = await fetch(`http://${gateway}/Grace`);
  assert.equal(await answer.text(), "hello, Grace\n");
});

test("a greeting needs a name", { skip }, async () => {
  const answer = await fetch(`http://${gateway}/`);
  assert.equal(answer.status, 404);
});

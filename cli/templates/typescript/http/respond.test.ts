// The answers alone, without Main.

import assert from "node:assert/strict";
import { test } from "node:test";
import { respond } from "./respond.js";

test("greets the last part of the path", async () => {
  const response = respond(new Request("http://localhost/a/Ada"));
  assert.equal(await response.text(), "hello, Ada\n");
});

test("nobody is not greeted", () => {
  assert.equal(respond(new Request("http://localhost/")).status, 404);
  assert.equal(respond(new Request("http://localhost/Ada", { method: "POST" })).status, 405);
});

// The contracts of the conformance guest: tests/conformance/README.md.

import { bytesOperation, bytesQueue, bytesTopic, contract, operation, t, topic, type Infer } from "weir-sdk";

export const Numbers = t.object("Numbers", { left: t.integer(), right: t.integer() });
export type Numbers = Infer<typeof Numbers>;

export const Sum = t.object("Sum", { sum: t.integer() });

const text = (description: string) => bytesOperation(description);

export const conformance = contract("conformance@1", "What every language can do.", {
  echo: bytesOperation("The same bytes."),
  large: text("`N` bytes."),
  add: operation("Adds two numbers.", {
    args: Numbers,
    result: Sum,
    errors: { overflow: "`left` is over 1,000,000." },
  }),
  relay: text("Calls `add` of `tester@1`."),
  fail: text("Fails with an error of its own."),
  break: text("Fails unexpectedly."),
  spin: text("A loop without end."),
  recurse: text("Calls itself."),
  call: text("Calls, and waits."),
  send: text("Sends, and does not wait."),
  cancel: text("Sends, and cancels."),
  publish: text("Publishes an event."),
  publishTo: text("Publishes an event to one extension."),
  subscribe: text("Subscribes at run time."),
  unsubscribe: text("Ends such a subscription."),
  put: text("Puts a job."),
  take: text("Takes a job."),
  sleep: text("Waits."),
  context: text("What the request's context tells."),
  interrupt: text("Declares itself interrupted."),
  log: text("Logs a line."),
  config: text("A value of the configuration."),
  env: text("A variable of the environment."),
  read: text("The content of a file."),
  write: text("Writes a file."),
  numbers: topic("conformance.numbers", Numbers, "Numbers to add."),
  summed: topic("conformance.out.sum", Sum, "Their sums."),
});

export const tester = contract("tester@1", "What the test serves.", {
  add: operation("Adds two numbers.", { args: Numbers, result: Sum }),
});

export const jobs = bytesQueue("conformance-jobs");
export const heard = bytesTopic("conformance.in.>");

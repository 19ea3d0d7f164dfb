// The conformance guest: tests/conformance/README.md says what each handler does.

import {
  Failure,
  WeirError,
  exit,
  extension,
  log,
  readTextFile,
  writeFile,
  type CallOptions,
  type Context,
  type Level,
  type Receipt,
} from "weir-sdk";

import { conformance, heard, jobs, tester, type Numbers } from "./contract.js";
import { decode, encode, ok, outcome, shown, words } from "./words.js";

const timeout = (ms: string) => (Number(ms) === 0 ? {} : { timeoutMs: Number(ms) });

const counts = ({ delivered, shed, refused }: Receipt) => `${delivered} ${shed} ${refused}`;

/** The arguments of `call`, `send` and `cancel`. */
function callWords(payload: Uint8Array): [string, string, Uint8Array, CallOptions] {
  const [contract, operation, provider, ms, rest] = words(payload, 5) as [string, string, string, string, string];
  return [contract, operation, encode(rest), { ...timeout(ms), ...(provider === "-" ? {} : { provider }) }];
}

function add(context: Context, { left, right }: Numbers): { sum: number } {
  const sum = { sum: left + right };
  context.publish(conformance.summed, sum);
  return sum;
}

function fail_unexpectedly(): never {
  throw new Error("out of cheese");
}

const table = new Uint8Array(4096).fill(7);

function down(levels: number): number {
  return levels === 0 ? 0 : down(levels - 1) + levels;
}

function found(value: string | undefined): Uint8Array {
  return encode(value === undefined ? "none" : ok(value));
}

export default extension({
  id: "conformance",
  version: "0.1.0",
  fulfills: [conformance],
  requires: [tester],
  wants: ["other@1", "nobody@1"],
  publishes: ["conformance.out.>"],
  subscribes: [heard, conformance.numbers, "conformance.more.>"],
  puts: ["conformance-out"],
  takes: [jobs, "conformance-more"],
  dirs: [{ guest: "/data", mode: "rw" }],
  env: ["CONFORMANCE"],
})
  .onStart((context) => {
    if (context.config("start") === "fail") throw new Error("asked to fail");
    log.info("conformance is ready", { language: "TypeScript" });
  })
  .onStop((context) => {
    context.publishBytes("conformance.out.stopped", encode("bye"));
  })
  .on(conformance.echo, (_, payload) => payload)
  .on(conformance.large, (_, payload) => new Uint8Array(Number(decode(payload))).fill("x".charCodeAt(0)))
  .on(conformance.add, (context, numbers) => {
    if (numbers.left > 1_000_000) throw new Failure("overflow", "`left` is over 1,000,000");
    return add(context, numbers);
  })
  .on(conformance.relay, (context, payload) => {
    const [left, right] = words(payload, 2).map(Number) as [number, number];
    return outcome(async () => (await context.call(tester.add, { left, right })).sum);
  })
  .on(conformance.fail, (_, payload) => {
    const [code, message] = words(payload, 2) as [string, string];
    throw new Failure(code, message);
  })
  .on(conformance.break, () => fail_unexpectedly())
  .on(conformance.spin, () => {
    for (;;);
  })
  .on(conformance.recurse, (_, levels) => {
    down(Number(decode(levels)));
    return encode(table.every((byte) => byte === 7) ? "ok" : "overwritten");
  })
  .on(conformance.call, (context, payload) =>
    outcome(async () => decode(await context.callBytes(...callWords(payload)))),
  )
  .on(conformance.send, (context, payload) => {
    void outcome(async () => decode(await context.sendBytes(...callWords(payload)).answer)).then((told) =>
      context.publishBytes("conformance.out.response", told),
    );
    return encode("ok");
  })
  .on(conformance.cancel, (context, payload) =>
    outcome(async () => {
      const { answer, cancel } = context.sendBytes(...callWords(payload));
      const first = await Promise.race([answer, context.sleep(50)]);
      cancel();
      return first === undefined ? undefined : decode(first);
    }),
  )
  .on(conformance.publish, (context, payload) => {
    const [topic, rest] = words(payload, 2) as [string, string];
    return outcome(() => counts(context.publishBytes(topic, encode(rest))));
  })
  .on(conformance.publishTo, (context, payload) => {
    const [to, topic, rest] = words(payload, 3) as [string, string, string];
    return outcome(() => counts(context.publishBytes(topic, encode(rest), { to })));
  })
  .on(conformance.subscribe, (context, pattern) => outcome(() => context.subscribe(decode(pattern))))
  .on(conformance.unsubscribe, (context, pattern) => outcome(() => context.unsubscribe(decode(pattern))))
  .on(conformance.put, (context, payload) => {
    const [queue, ms, rest] = words(payload, 3) as [string, string, string];
    return outcome(() => void context.putBytes(queue, encode(rest), timeout(ms)));
  })
  .on(conformance.take, (context, payload) => {
    const [queue, ms] = words(payload, 2) as [string, string];
    return outcome(async () => {
      const job = await context.takeBytes(queue, { timeoutMs: Number(ms) });
      job.done();
      return decode(job.payload);
    });
  })
  .on(conformance.sleep, async (context, payload) => {
    await context.sleep(Number(decode(payload)));
    context.publishBytes("conformance.out.slept", payload);
    return new Uint8Array();
  })
  .on(conformance.context, (context) => encode(`${context.ownName} ${context.sender} ${context.remainingMs}`))
  .on(conformance.interrupt, (context, reason) => outcome(() => context.interrupted(decode(reason))))
  .on(conformance.log, (_, payload) => {
    const [level, text] = words(payload, 2) as [Level, string];
    return outcome(() => log[level](text, { from: "conformance" }));
  })
  .on(conformance.config, (context, key) => found(context.config(decode(key))))
  .on(conformance.env, (context, name) => found(context.env(decode(name))))
  .on(conformance.read, (_, path) => outcome(() => readTextFile(decode(path))))
  .on(conformance.write, (_, payload) => {
    const [path, content] = words(payload, 2) as [string, string];
    return outcome(() => writeFile(path, content));
  })
  .onEvent(heard, tellOn)
  .onAnyEvent(tellOn)
  .onEvent(conformance.numbers, (context, { payload }) => void add(context, payload))
  .onJob(jobs, (context, job) => {
    const text = decode(job);
    if (text === "fail") throw new Failure("failed", "as asked");
    if (text === "die") exit(1);
    if (text === "ready") return context.ready();
    context.publishBytes("conformance.out.worked", job);
  });

function tellOn(
  context: Context,
  event: { topic: string; sequence: bigint; lost: bigint; retained: boolean; payload: Uint8Array },
): void {
  const { topic, sequence, lost, retained, payload } = event;
  const kind = retained ? "retained" : "new";
  context.publishBytes(
    "conformance.out.heard",
    encode(`${topic} ${sequence} ${lost} ${kind} ${context.sender} ${decode(payload)}`),
  );
}

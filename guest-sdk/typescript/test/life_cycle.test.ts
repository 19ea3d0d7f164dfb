import assert from "node:assert/strict";
import { test } from "node:test";

import { contract, extension, log, operation, t, type Context } from "../src/index.js";
import { Server } from "../src/serve.js";
import { Harness } from "../src/testing/harness.js";
import { Memory } from "../src/testing/memory.js";
import { greeter, greeterExtension, storage } from "./greeter.js";

test("stop lets handlers finish, with the answers that they wait for, and then runs `onStop`", async () => {
  const main = new Harness(greeterExtension().onStop((context) => void context.publish("greeter.heard", "bye")));
  main.fake(storage.get, async () => {
    await main.sleep(100);
    return "good bye";
  });
  const pending = await main.send(greeter.greet, { name: "Ada" });
  await main.stop();
  assert.deepEqual(await pending.wait(), { text: "good bye Ada", number: 1 });
  assert.deepEqual(
    main.published().map((event) => event.json()),
    ["Ada", "bye"],
  );
  await assert.rejects(main.call(greeter.names, {}), /no provider/);
});

test("`onStart` can call, and what it throws ends the extension", async () => {
  const starts = (answer: string) => {
    const main = new Harness(
      extension({ wants: [storage] }).onStart(async (context) => {
        if ((await context.call(storage.get, { key: "a" })) !== "go") throw new Error("asked to fail");
      }),
    );
    main.fake(storage.get, async () => {
      await main.sleep(10);
      return answer;
    });
    return main.start();
  };
  await starts("go");
  await assert.rejects(starts("stay"), /asked to fail/);
});

test("a background task runs until stop, which ends its waits", async () => {
  let rounds = 0;
  let ended: unknown;
  const main = new Harness(
    extension({}).background(async (context) => {
      try {
        for (;;) {
          await context.sleep(100);
          rounds += 1;
        }
      } catch (error) {
        ended = error;
        throw error;
      }
    }),
  );
  await main.advance(1000);
  assert.equal(rounds, 10);
  await main.stop();
  assert.match(String(ended), /the extension stops/);
});

test("a background task that fails ends the extension", async () => {
  const main = new Harness(
    extension({}).background(async (context) => {
      await context.sleep(10);
      throw new Error("no more");
    }),
  );
  await main.advance(10);
  await assert.rejects(main.stop(), /no more/);
});

test("a background task that fails is the cause, whatever a handler in hand waits for", async () => {
  const waits = contract("waits@1", "", { wait: operation("Waits.") });
  class Component extends Memory {
    override wait(listens: boolean, until: number | undefined): Promise<boolean> {
      if (this.isReady && !listens && until === undefined) throw new Error("the extension waits for what never comes");
      return super.wait(listens, until);
    }
  }
  for (const wait of [() => new Promise<null>(() => {}), (context: Context) => context.sleep(1e6).then(() => null)]) {
    const failing = extension({ fulfills: [waits] })
      .on(waits.wait, wait)
      .background(async (context) => {
        await context.sleep(10);
        throw new Error("no more");
      });
    const main = new Component(failing.sections({ id: "waiter", version: "0.0.0" }).manifest);
    const ended = assert.rejects(new Server(main, failing).run(), /no more/);
    await main.idle();
    main.ask("waits@1", "wait", new Uint8Array(), 1e7);
    await main.idle();
    assert.equal(main.failure, undefined);
    await main.hurry(ended);
    assert.equal(main.failure, "no more");
    assert.equal(main.now(), 1010);
  }
});

test("an interrupted extension refuses requests until it is ready again", async () => {
  const breaks = contract("breaks@1", "", { pause: operation("Pauses.") });
  const main = new Harness(
    extension({ fulfills: [breaks] }).on(breaks.pause, async (context) => {
      context.interrupted("no disk");
      void context.sleep(100).then(() => context.ready());
      return null;
    }),
  );
  await main.call(breaks.pause, {});
  assert.equal(main.interrupted, "no disk");
  await assert.rejects(main.call(breaks.pause, {}), /not ready: no disk/);
  await main.advance(100);
  await main.call(breaks.pause, {});
});

test("configuration, environment, sender and log reach the handler and Main", async () => {
  const asks = contract("asks@1", "", { all: operation("All.", { result: t.array(t.nullable(t.string())) }) });
  const main = new Harness(
    extension({ id: "asker", fulfills: [asks] }).on(asks.all, (context) => {
      log.info("asked", { by: context.sender, number: 7 });
      return [
        context.config("a") ?? null,
        context.config("b") ?? null,
        context.env("A") ?? null,
        context.sender ?? null,
        context.ownName,
      ];
    }),
  );
  main.config("a", "1");
  main.env("A", "2");
  main.sender("app:player");
  assert.deepEqual(await main.call(asks.all, {}), ["1", null, "2", "app:player", "asker"]);
  assert.deepEqual(main.logged, [{ level: "info", message: "asked", fields: { by: "app:player", number: "7" } }]);
});

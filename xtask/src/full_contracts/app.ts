// An app in TypeScript: calls every extension by its generated client, and goes on after Main was killed.

import { Weir, WeirError, type Gap, type WeirEvent } from "weir-client";

import {
  DeviceInfoClient, EchoClient, LocalStorageClient, SettingsClient, TelemetryClient, type Changed, type Setting,
} from "./clients.js";

function equal(found: unknown, expected: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
  }
}

/** Takes what comes in its order. */
class Line<T> {
  #there: T[] = [];
  #wanted: ((value: T) => void)[] = [];

  put(value: T): void {
    const wanted = this.#wanted.shift();
    wanted ? wanted(value) : this.#there.push(value);
  }

  next(): Promise<T> {
    const value = this.#there.shift();
    return value === undefined ? new Promise((resolve) => this.#wanted.push(resolve)) : Promise.resolve(value);
  }
}

async function change(settings: SettingsClient, changes: Line<WeirEvent<Changed>>, value: number): Promise<void> {
  await settings.set({ key: "typescript", value }, { timeoutMs: 20_000 });
  const { topic, payload } = await changes.next();
  equal([topic, payload.key, payload.value], ["settings.changed.typescript", "typescript", value]);
}

export async function run(url: string, name: string): Promise<void> {
  const weir = new Weir(url, name);
  const [device, settings, storage] =
    [new DeviceInfoClient(weir), new SettingsClient(weir), new LocalStorageClient(weir)];

  const { total_kib, free_kib } = await device.memory({ timeoutMs: 20_000 });
  if (!(total_kib > free_kib)) throw new Error(`${total_kib} KiB of memory`);
  equal((await device.os()).id.length > 0, true);

  await settings.set({ key: "typescript", value: 1 });
  const setting: Setting = await settings.get({ key: "typescript" });
  equal([setting.value, setting.type], [1, "integer"]);
  equal(Object.keys((await settings.list({ prefix: "typescript" })).settings), ["typescript"]);
  equal((await settings.list()).settings["typescript"]?.value, 1);
  const refused = await settings.get({ key: "none" }).catch((error: unknown) => error);
  equal(refused instanceof WeirError && [refused.code, refused.provider], ["not-found", true]);

  await storage.set({ key: "typescript", value: { a: [null, true] } });
  equal((await storage.get({ key: "typescript" })).value, { a: [null, true] });
  equal((await storage.delete({ key: "typescript" })).existed, true);
  for (const bytes of [[0, 255], [123, 125]]) {
    equal([...(await new EchoClient(weir).echo(new Uint8Array(bytes)))], bytes);
  }
  equal((await new TelemetryClient(weir).snapshot()).since > 0, true);

  const [changes, gaps] = [new Line<WeirEvent<Changed>>(), new Line<Gap>()];
  const onGap = (gap: Gap) => gap.topic === undefined && gaps.put(gap);
  await settings.subscribeChanged((event) => changes.put(event), { onGap }, "settings.changed.typescript");
  await change(settings, changes, 2);

  console.log("ready");
  equal((await gaps.next()).pattern, "settings.changed.typescript");
  equal((await settings.get({ key: "typescript" })).value, 2);
  await change(settings, changes, 3);
  weir.close();
}

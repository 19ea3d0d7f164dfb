// Written by `weir generate typescript` from `device.info@1`, `echo@1`, `settings@1`,
// `local.storage@1` and `telemetry@1`: changes here do not last.

import type { CallOptions, Json, SubscribeOptions, Subscription, Weir, WeirEvent } from "weir-client";

/**
 * The device and its state.
 * A client of `device.info@1`.
 */
export class DeviceInfoClient {
  readonly #weir: Weir;

  constructor(weir: Weir) {
    this.#weir = weir;
  }

  /**
   * The device's memory.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
   */
  memory(options?: CallOptions): Promise<Memory> {
    return this.#weir.call<Memory>("device.info@1/memory", undefined, options);
  }

  /**
   * The time since the device started.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
   */
  uptime(options?: CallOptions): Promise<Uptime> {
    return this.#weir.call<Uptime>("device.info@1/uptime", undefined, options);
  }

  /**
   * The load of the device.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
   */
  load(options?: CallOptions): Promise<Load> {
    return this.#weir.call<Load>("device.info@1/load", undefined, options);
  }

  /**
   * The operating system.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `unavailable`: A file of the system cannot be read. The text names it.
   */
  os(options?: CallOptions): Promise<Os> {
    return this.#weir.call<Os>("device.info@1/os", undefined, options);
  }

  /**
   * The processor.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `unavailable`: A file of the kernel cannot be read or lacks a figure. The text names it.
   */
  cpu(options?: CallOptions): Promise<Cpu> {
    return this.#weir.call<Cpu>("device.info@1/cpu", undefined, options);
  }
}

/** Memory, in KiB, as in `/proc/meminfo`. */
export interface Memory {
  /** All memory that the kernel manages. */
  total_kib: number;
  /** Unused memory. */
  free_kib: number;
  /** Memory that programs can get without swapping. */
  available_kib: number;
  /** Memory of buffers. */
  buffers_kib: number;
  /** Memory of the page cache. */
  cached_kib: number;
  /** All swap space. */
  swap_total_kib: number;
  /** Free swap space. */
  swap_free_kib: number;
}

/** Time since the device started, as in `/proc/uptime`. */
export interface Uptime {
  /** Seconds since the start. */
  seconds: number;
  /** Idle seconds of its processors, added up. */
  idle_seconds: number;
}

/** Average number of tasks that ran or wanted to run, as in `/proc/loadavg`. */
export interface Load {
  /** Over the last minute. */
  one: number;
  /** Over the last five minutes. */
  five: number;
  /** Over the last fifteen minutes. */
  fifteen: number;
}

/** The operating system, as in `/etc/os-release`. Missing values are empty. */
export interface Os {
  /** For programs, such as `debian`. */
  id: string;
  /** For people, such as `Debian GNU/Linux`. */
  name: string;
  /** Its version, such as `12 (bookworm)`, or else its version number. */
  version: string;
  /** Name and version. */
  pretty_name: string;
  /** The kernel's release, such as `6.1.0-18-amd64`. */
  kernel: string;
}

/** The processor, as in `/proc/cpuinfo`. */
export interface Cpu {
  /** The model's name. */
  model: string;
  /** Cores that the kernel uses. */
  cores: number;
}

/**
 * Answers with the bytes of the request, for tests and benchmarks.
 * A client of `echo@1`.
 */
export class EchoClient {
  readonly #weir: Weir;

  constructor(weir: Weir) {
    this.#weir = weir;
  }

  /** Answers with the bytes of the request. */
  async echo(bytes: Uint8Array, options?: CallOptions): Promise<Uint8Array> {
    return bytesOf(await this.#weir.call("echo@1/echo", bytes, options));
  }
}

/**
 * The device's settings, each with a fixed type.
 * A client of `settings@1`.
 */
export class SettingsClient {
  readonly #weir: Weir;

  constructor(weir: Weir) {
    this.#weir = weir;
  }

  /**
   * A setting.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `not-found`: No setting has this key.
   */
  get(params: SettingsKey, options?: CallOptions): Promise<Setting> {
    return this.#weir.call<Setting>("settings@1/get", params, options);
  }

  /**
   * Gives a setting a value. Publishes the change if the value is new.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `invalid-argument`: A key is 1 to 128 letters, digits, `-` and `_`; a text has at most 4096 bytes.
   * - `wrong-type`: The setting has a value of another type.
   * - `full`: There are 1024 settings, their keys and texts have 262,144 bytes, or storage is full.
   * - `io`: Storage failed to write. The change is not visible, but may be there after a restart.
   */
  set(params: SettingsEntry, options?: CallOptions): Promise<Previous> {
    return this.#weir.call<Previous>("settings@1/set", params, options);
  }

  /** The settings with a prefix of their keys. */
  list(params: SettingsPrefix = {}, options?: CallOptions): Promise<Settings> {
    return this.#weir.call<Settings>("settings@1/list", params, options);
  }

  /**
   * Changes, each published under `settings.changed.<key>`: `CHANGED.at(key)`.
   *
   * Subscribes, also after a break of the connection: `onGap` tells that events may be missing.
   * `pattern` may name fewer topics.
   */
  subscribeChanged(
    listener: (event: WeirEvent<Changed>) => void,
    options?: SubscribeOptions,
    pattern: string = "settings.changed.>",
  ): Promise<Subscription> {
    return this.#weir.subscribe<Changed>(pattern, listener, options);
  }
}

/** Arguments of `get`. */
export interface SettingsKey {
  /** The key. */
  key: string;
}

/** Arguments of `set`. */
export interface SettingsEntry {
  /** The key. */
  key: string;
  /** A boolean, a number or a string. */
  value: Json;
}

/** Arguments of `list`. */
export interface SettingsPrefix {
  /** The prefix. The default fits every key. */
  prefix?: string;
}

/** A setting. */
export interface Setting {
  /** Its value. */
  value: Json;
  /** Its type. */
  type: Type;
}

/** The types of settings. */
export type Type =
  /** True or false. */
  | "bool"
  /** A whole number. */
  | "integer"
  /** Any number. */
  | "number"
  /** A text. */
  | "string";

/** A setting before its change. */
export interface Previous {
  /** Its value. None, in JSON `null`, if it had none. */
  previous?: Json;
}

/** Some settings. */
export interface Settings {
  /** By key. */
  settings: { [key: string]: Setting };
}

/** The event of a setting's new value. */
export interface Changed {
  /** The key. */
  key: string;
  /** The new value. */
  value: Json;
  /** The old value. None, in JSON `null`, if it had none. */
  previous?: Json;
}

/**
 * Values that survive power cuts.
 * A client of `local.storage@1`.
 */
export class LocalStorageClient {
  readonly #weir: Weir;

  constructor(weir: Weir) {
    this.#weir = weir;
  }

  /**
   * The value of a key, as on disk.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `invalid-argument`: A key has 1 to 256 bytes.
   */
  get(params: LocalStorageKey, options?: CallOptions): Promise<Found> {
    return this.#weir.call<Found>("local.storage@1/get", params, options);
  }

  /**
   * Gives a key a value. Answered when the value is on disk.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `invalid-argument`: A key has 1 to 256 bytes.
   * - `too-large`: A value has at most 1 MiB as JSON.
   * - `full`: All keys and values together would have more than `max-bytes`.
   * - `io`: The disk did not take the change. It is not visible, but may be there after a restart.
   */
  set(params: LocalStorageEntry, options?: CallOptions): Promise<Empty> {
    return this.#weir.call<Empty>("local.storage@1/set", params, options);
  }

  /**
   * Deletes a key. Answered when that is on disk.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `invalid-argument`: A key has 1 to 256 bytes.
   * - `io`: The disk did not take the change. It is not visible, but may be there after a restart.
   */
  delete(params: LocalStorageKey, options?: CallOptions): Promise<Deleted> {
    return this.#weir.call<Deleted>("local.storage@1/delete", params, options);
  }

  /**
   * The keys that begin with a prefix.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `too-large`: The keys have more than 524,288 bytes together: use a longer prefix.
   */
  list(params: LocalStoragePrefix = {}, options?: CallOptions): Promise<Keys> {
    return this.#weir.call<Keys>("local.storage@1/list", params, options);
  }
}

/** Arguments of `get`. */
export interface LocalStorageKey {
  /** The key. */
  key: string;
}

/** Arguments of `set`. */
export interface LocalStorageEntry {
  /** The key. */
  key: string;
  /** Any value. A `null` reads as no value. */
  value: Json;
}

/** Arguments of `list`. */
export interface LocalStoragePrefix {
  /** The prefix. The default fits every key. */
  prefix?: string;
}

/** The value of a key. */
export interface Found {
  /** None, in JSON `null`, if the key has no value. */
  value?: Json;
}

/** No arguments, or no result. */
export interface Empty {}

/** The result of a deletion. */
export interface Deleted {
  /** Whether the key had a value. */
  existed: boolean;
}

/** Some keys. */
export interface Keys {
  /** In the order of their bytes. */
  keys: string[];
}

/**
 * Counts of events.
 * A client of `telemetry@1`.
 */
export class TelemetryClient {
  readonly #weir: Weir;

  constructor(weir: Weir) {
    this.#weir = weir;
  }

  /** The counts so far. */
  snapshot(options?: CallOptions): Promise<Snapshot> {
    return this.#weir.call<Snapshot>("telemetry@1/snapshot", undefined, options);
  }
}

/** The counts. */
export interface Snapshot {
  /** The start of counting, in seconds of Unix time. */
  since: number;
  /** By topic, in the order of the topics' names. */
  topics: TopicCount[];
  /** All further topics together. */
  other: Count;
}

/** The count of one topic's events. */
export interface TopicCount {
  /** The topic. */
  topic: string;
  /** Events received. */
  count: number;
  /**
   * Events lost before they were received. A pattern of several topics counts them with the topic of the
   * next event.
   */
  lost: number;
  /** Events a second, on average over the last minute. */
  per_second_1m: number;
}

/** A count of events. */
export interface Count {
  /** Events received. */
  count: number;
  /** Events lost before they were received. */
  lost: number;
  /** Events a second, on average over the last minute. */
  per_second_1m: number;
}

/** The gateway sends bytes that are JSON as JSON: then their spaces and the form of their numbers may differ. */
function bytesOf(payload: unknown): Uint8Array {
  return payload instanceof Uint8Array ? payload : new TextEncoder().encode(JSON.stringify(payload));
}

// Written by `weir generate typescript` from `settings@1`: changes here do not last.

import type { CallOptions, Json, SubscribeOptions, Subscription, Weir, WeirEvent } from "weir-client";

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
  get(params: Key, options?: CallOptions): Promise<Setting> {
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
  set(params: Entry, options?: CallOptions): Promise<Previous> {
    return this.#weir.call<Previous>("settings@1/set", params, options);
  }

  /** The settings with a prefix of their keys. */
  list(params: Prefix = {}, options?: CallOptions): Promise<Settings> {
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
export interface Key {
  /** The key. */
  key: string;
}

/** Arguments of `set`. */
export interface Entry {
  /** The key. */
  key: string;
  /** A boolean, a number or a string. */
  value: Json;
}

/** Arguments of `list`. */
export interface Prefix {
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

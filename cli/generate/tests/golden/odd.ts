// Written by `weir generate typescript` from `odd.things@2`: changes here do not last.

import type { AskOptions, CallOptions, Job, Json, SubscribeOptions, Subscription, Weir, WeirEvent } from "weir-client";

/**
 * Names and types that are hard to say.
 *
 * ``
 * panic!("*\/ and \"\"\" and \u{202e}")
 * ``
 * indented()
 * >> import os
 * A client of `odd.things@2`.
 */
export class OddThingsClient {
  readonly #weir: Weir;

  constructor(weir: Weir) {
    this.#weir = weir;
  }

  /**
   * Keywords.
   *
   * Codes of a `WeirError` that are the contract's own:
   * - `*\/ "``: The code is odd.
   * - `plain`
   */
  type(params: Self, options?: CallOptions): Promise<Kind> {
    return this.#weir.call<Kind>("odd.things@2/type", params, options);
  }

  list(argument: Pair[], options?: CallOptions): Promise<Node[]> {
    return this.#weir.call<Node[]>("odd.things@2/list", argument, options);
  }

  str(argument: string | null, options?: CallOptions): Promise<{ [key: string]: Kind }> {
    return this.#weir.call<{ [key: string]: Kind }>("odd.things@2/str", argument, options);
  }

  constructor2(params: ConstructorKind, options?: CallOptions): Promise<{ made: boolean }> {
    return this.#weir.call<{ made: boolean }>("odd.things@2/constructor", params, options);
  }

  async _2ndSelf(bytes: Uint8Array, options?: CallOptions): Promise<Uint8Array> {
    return bytesOf(await this.#weir.call("odd.things@2/2nd.Self", bytes, options));
  }

  /** Takes nothing, strictly. */
  nothing(params: Nothing = {}, options?: CallOptions): Promise<null> {
    return this.#weir.call<null>("odd.things@2/nothing", params, options);
  }

  never(options?: CallOptions): Promise<Nobody> {
    return this.#weir.call<Nobody>("odd.things@2/never", undefined, options);
  }

  /**
   * Moves.
   *
   * Subscribes, also after a break of the connection: `onGap` tells that events may be missing.
   * `pattern` may name fewer topics.
   */
  subscribeMoved(
    listener: (event: WeirEvent<Shape>) => void,
    options?: SubscribeOptions,
    pattern: string = "odd.things.*.moved.>",
  ): Promise<Subscription> {
    return this.#weir.subscribe<Shape>(pattern, listener, options);
  }

  /** Subscribes, also after a break of the connection: `onGap` tells that events may be missing. */
  subscribePictures(
    listener: (event: WeirEvent<Uint8Array>) => void,
    options?: SubscribeOptions,
    pattern: string = "pictures",
  ): Promise<Subscription> {
    const read = (event: WeirEvent) => listener({ ...event, payload: bytesOf(event.payload) });
    return this.#weir.subscribe(pattern, read, options);
  }

  /**
   * Subscribes, also after a break of the connection: `onGap` tells that events may be missing.
   * `pattern` may name fewer topics.
   */
  subscribeEvents(
    listener: (event: WeirEvent<"on" | "off">) => void,
    options?: SubscribeOptions,
    pattern: string = "odd.things.*",
  ): Promise<Subscription> {
    return this.#weir.subscribe<"on" | "off">(pattern, listener, options);
  }

  /**
   * Work.
   *
   * Puts a job into the queue. Gives null once a reader has finished it, under `untilDone`.
   */
  putJobs(
    job: Shape,
    options?: AskOptions & { untilDone?: boolean },
  ): Promise<{ id: string } | null> {
    return this.#weir.put("jobs", job, options);
  }

  /**
   * Work.
   *
   * Takes a job. Gives null if none came in time.
   */
  takeJobs(options?: AskOptions): Promise<Job<Shape> | null> {
    return this.#weir.take<Shape>("jobs", options);
  }

  /** Puts a job into the queue. Gives null once a reader has finished it, under `untilDone`. */
  putRawJobs(
    job: Uint8Array,
    options?: AskOptions & { untilDone?: boolean },
  ): Promise<{ id: string } | null> {
    return this.#weir.put("raw-jobs", job, options);
  }

  /** Takes a job. Gives null if none came in time. */
  async takeRawJobs(options?: AskOptions): Promise<Job<Uint8Array> | null> {
    const job = await this.#weir.take("raw-jobs", options);
    return job && { ...job, payload: bytesOf(job.payload) };
  }
}

/** Arguments of `type`. */
export interface Self {
  /** A keyword of Rust. */
  type: Kind;
  /** A keyword of Python and JavaScript. */
  class: string[];
  self?: string;
  "größe"?: number | null;
  _answer?: Json;
  $base64?: Tree;
}

/** Arguments of `constructor`. */
export interface ConstructorKind {
  inner: { deep: { "x y"?: number } };
}

/** Arguments of `nothing`. */
export interface Nothing {}

/** Words. */
export type Kind =
  | "self"
  | "Self"
  | "1st"
  | ""
  | "a b"
  | "None"
  /** Not Latin. */
  | "größer"
  | (string & {});

/** A tree with its parts inside. */
export interface Node {
  left?: Node | null;
  right?: Node;
  parent?: { node?: Node };
  children: Node[];
  value: Value;
}

/** A list of such lists. */
export type Tree = Tree[];

export type Pair = [number, string];

/** Time. */
export type Seconds = number;

/**
 * By a field with its name.
 * A later version of the contract may have more.
 */
export type Shape =
  /** Round. */
  | { kind: "circle"; radius: number }
  | { kind: "group-of"; content: Shape[]; for?: Seconds }
  | { kind: "none" };

/** By its only field. */
export type Move =
  | "stay" | "leave"
  /** By so much. */
  | { by: Pair }
  | { to: { x: number; y: number } }
  | { then: Move }
  | { both: [Move, boolean] };

/** By nothing but its JSON. */
export type Value = number | "auto" | 7 | true | Value[] | Move | { __odd?: string; "no name": number } | (boolean | null)[] | null;

export type Nobody = never;

export interface Empty {}

/** Any JSON. */
export type Anything = Json;

export type Maybe = Empty | null;

/** Has the name of something else. */
export interface Event {
  const: "only";
  promise?: Promise2;
}

export type Promise2 = { [key: string]: Anything };

/** The gateway sends bytes that are JSON as JSON: then their spaces and the form of their numbers may differ. */
function bytesOf(payload: unknown): Uint8Array {
  return payload instanceof Uint8Array ? payload : new TextEncoder().encode(JSON.stringify(payload));
}

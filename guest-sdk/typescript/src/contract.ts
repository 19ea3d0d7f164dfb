// Contracts: names with a version, and what they describe.

import { t, type Schema, type Schemas, type Type } from "./types.js";
import { Failure } from "./error.js";
import { isOperation, isId, isPattern, repeated } from "./names.js";

/** How a payload travels: as JSON, or as it is. */
export interface Codec<T> {
  encode(value: T): Uint8Array;
  /** Throws a {@link Fault}. */
  decode(payload: Uint8Array): T;
}

/** A payload that does not fit. The text names the place. */
export class Fault extends Error {}

/** An operation of a contract, with the types of its arguments and its result. */
export class Operation<A, R> {
  /** @internal */
  constructor(
    readonly contract: string,
    /** Its name on the wire. */
    readonly name: string,
    /** @internal */
    readonly args: Codec<A>,
    /** @internal */
    readonly result: Codec<R>,
    /** Its part of the description. @internal */
    readonly describe: (contract: string, name: string, named: Schemas) => object,
  ) {}

  toString(): string {
    return `${this.contract} ${this.name}`;
  }
}

/** A topic, or a pattern of topics, with events of one type. */
export class Topic<T> {
  /** @internal */
  constructor(
    readonly pattern: string,
    /** @internal */
    readonly codec: Codec<T>,
    /** @internal */
    readonly describe: (named: Schemas) => object,
  ) {}

  /** The topic with `segment` in place of the pattern's first wildcard. */
  at(segment: string): Topic<T> {
    return new Topic(
      this.pattern.replace(/[*>]/, () => segment),
      this.codec,
      this.describe,
    );
  }

  toString(): string {
    return this.pattern;
  }
}

/** A shared queue with jobs of one type. The operator names and bounds the queues. */
export class Queue<T> {
  /** @internal */
  constructor(
    readonly name: string,
    /** @internal */
    readonly codec: Codec<T>,
    /** @internal */
    readonly describe: (named: Schemas) => object,
  ) {}

  toString(): string {
    return this.name;
  }
}

/** A contract: a name with a version, such as `settings@1`, and its operations, topics and queues. */
export class Contract {
  /** @internal */
  constructor(
    readonly contract: string,
    /** @internal */
    readonly description: string,
    /** @internal */
    readonly members: (Operation<any, any> | Topic<any> | Queue<any>)[],
  ) {}

  /** Its description, as a document of OpenRPC. Throws if Main would refuse it. @internal */
  document(role: "provider" | "caller"): object {
    this.checkNames();
    const named: Schemas = new Map();
    const of = <M>(kind: new (...args: never[]) => M) =>
      this.members.filter((member): member is typeof member & M => member instanceof kind);
    const methods = of(Operation).map((member) => member.describe(this.contract, member.name, named));
    const topics = of(Topic).map((member) => member.describe(named));
    const queues = of(Queue).map((member) => member.describe(named));
    return {
      openrpc: "1.3.2",
      info: { title: this.contract, version: this.contract.replace(/^.*@/, ""), description: this.description },
      "x-role": role,
      methods,
      ...(topics.length > 0 ? { "x-topics": topics } : {}),
      ...(queues.length > 0 ? { "x-queues": queues } : {}),
      components: { schemas: Object.fromEntries(named) },
    };
  }

  toString(): string {
    return this.contract;
  }

  private checkNames(): void {
    const faults = [
      this.nameFaults(Operation, isOperation, "operation"),
      this.nameFaults(Topic, isPattern, "topic"),
      this.nameFaults(Queue, isId, "queue"),
    ].flat();
    if (faults.length > 0) throw new TypeError(`the contract \`${this.contract}\` is wrong: ${faults.join("; ")}`);
  }

  private nameFaults(kind: Function, fits: (name: string) => boolean, what: string): string[] {
    const names = this.members
      .filter((member) => member instanceof kind)
      .map((member) => (member instanceof Topic ? member.pattern : member.name));
    return [
      ...names.filter((name) => !fits(name)).map((name) => `\`${name}\` is no name of ${article(what)}`),
      ...repeated(names).map((name) => `the ${what} \`${name}\` is there twice`),
    ];
  }
}

function article(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;
}

/**
 * Declares a contract. Each member is an {@link operation}, a {@link topic} or a {@link queue}. On the wire an operation has
 * the name of its member in kebab-case: `publishTo` is `publish-to`.
 *
 * The members are members of what this returns: `greeter.greet`.
 */
export function contract<M extends Record<string, Operation<any, any> | Topic<any> | Queue<any>>>(
  name: string,
  description: string,
  members: M,
): Contract & M {
  const bound = Object.entries(members).map(([key, member]) => {
    if (!(member instanceof Operation)) return [key, member] as const;
    const { args, result, describe } = member;
    return [key, new Operation(name, member.name === "" ? kebab(key) : member.name, args, result, describe)] as const;
  });
  const made = new Contract(
    name,
    description,
    bound.map(([, member]) => member),
  );
  for (const [key, member] of bound) {
    if (key in made) throw new TypeError(`a member of the contract \`${name}\` cannot be called \`${key}\``);
    Object.assign(made, { [key]: member });
  }
  return made as Contract & M;
}

/** What an operation takes, gives, and fails with. */
export interface OperationTypes<A, R> {
  /** An object, as a rule: then new fields can be added later. Without it, there are no arguments. */
  args?: Type<A>;
  /** Without it, the result is null. */
  result?: Type<R>;
  /** The codes of its own errors, and when they come. */
  errors?: Record<string, string>;
  /** Its name on the wire, if it is not the name of its member in kebab-case. */
  name?: string;
}

/** An operation with arguments and a result in JSON. */
export function operation<A = {}, R = null>(description: string, types: OperationTypes<A, R> = {}): Operation<A, R> {
  const { args, result, errors = {}, name = "" } = types;
  const describe = (contract: string, name: string, named: Schemas) => {
    const fields = args?.details.fields;
    return {
      name: `${contract}/${name}`,
      description,
      paramStructure: "by-name",
      ...argumentsOf(args, named),
      params: Object.entries(fields ?? {}).map(([key, field]) => ({
        name: key,
        ...(field.details.doc === undefined ? {} : { description: field.details.doc }),
        required: field.details.optional !== true,
        schema: field.schema(named),
      })),
      result: {
        name: result?.details.name ?? "result",
        schema: result === undefined ? { type: "null" } : result.schema(named),
      },
      errors: errorsOf(errors),
    };
  };
  return new Operation<A, R>("", name, argumentCodec(args), json(result), describe);
}

/** An operation whose arguments and result are bytes. */
export function bytesOperation(
  description: string,
  { errors = {}, name = "" }: { errors?: Record<string, string>; name?: string } = {},
): Operation<Uint8Array, Uint8Array> {
  const describe = (contract: string, name: string) => ({
    name: `${contract}/${name}`,
    description,
    "x-bytes": true,
    params: [],
    result: { name: "bytes", schema: {} },
    errors: errorsOf(errors),
  });
  return new Operation("", name, bytes, bytes, describe);
}

/**
 * A topic with events in JSON: dotted segments of letters, digits, `-` and `_`. In a pattern the segment `*` stands for any
 * one segment, and `>`, at the end, for one or more.
 */
export function topic<T>(pattern: string, type: Type<T>, description?: string): Topic<T> {
  return new Topic(pattern, json(type), (named) => ({
    name: pattern,
    ...described(description),
    payload: type.schema(named),
  }));
}

/** A topic with bytes as events. */
export function bytesTopic(pattern: string, description?: string): Topic<Uint8Array> {
  return new Topic(pattern, bytes, () => ({ name: pattern, ...described(description), "x-bytes": true }));
}

/** A queue with jobs in JSON. Its name is 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter. */
export function queue<T>(name: string, type: Type<T>, description?: string): Queue<T> {
  return new Queue(name, json(type), (named) => ({ name, ...described(description), job: type.schema(named) }));
}

/** A queue with bytes as jobs. */
export function bytesQueue(name: string, description?: string): Queue<Uint8Array> {
  return new Queue(name, bytes, () => ({ name, ...described(description), "x-bytes": true }));
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Bytes as they are. */
export const bytes: Codec<Uint8Array> = { encode: (value) => value, decode: (payload) => payload };

/** JSON of a type; of any, without one. */
export function json<T>(type: Type<T> = t.any()): Codec<T> {
  return {
    encode: (value) => encoder.encode(written(value)),
    decode: (payload) => checked(type, parsed(payload)),
  };
}

/** Other languages refuse half of a surrogate pair, and `null` in place of `NaN`. */
function written(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  if (text.includes("null")) JSON.stringify(value, refuseEndless);
  return text.includes("\\ud") ? text.replace(LONE_SURROGATE, (found) => (found === "\\\\" ? found : "\uFFFD")) : text;
}

/** In what `JSON.stringify` writes; or a backslash, which is `\\` there. */
const LONE_SURROGATE = /\\(?:\\|ud[89a-f][0-9a-f]{2})/g;

function refuseEndless(key: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value))
    throw new TypeError(`${key === "" ? "the value" : `\`${key}\``} is ${value}, which JSON cannot say`);
  return value;
}

/** A payload that is empty or `null` stands for `{}`. */
function argumentCodec<A>(type: Type<A> | undefined): Codec<A> {
  const { encode } = json(type);
  return {
    encode: (value) => encode(value ?? ({} as A)),
    decode: (payload) => {
      const value = payload.length === 0 ? {} : parsed(payload);
      if (type === undefined) return {} as A;
      return checked(type, value === null && type.fault(null, "$") !== undefined ? {} : value);
    },
  };
}

/** The arguments of a request, or the failure to answer it with. */
export function argumentsFrom<A>(operation: Operation<A, unknown>, payload: Uint8Array): A {
  return received(operation.args, payload, "invalid-argument");
}

/** What a payload carries. Throws a {@link Failure} with this code. */
export function received<T>(codec: Codec<T>, payload: Uint8Array, code: string): T {
  try {
    return codec.decode(payload);
  } catch (error) {
    throw error instanceof Fault ? new Failure(code, error.message) : error;
  }
}

function parsed(payload: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(payload));
  } catch (error) {
    throw new Fault(`this is no JSON: ${(error as Error).message}`);
  }
}

function checked<T>(type: Type<T>, value: unknown): T {
  const fault = type.fault(value, "$");
  if (fault !== undefined) throw new Fault(fault);
  return type.read(value);
}

function argumentsOf(args: Type<unknown> | undefined, named: Schemas): object {
  if (args === undefined) return {};
  if (args.details.fields === undefined) return { "x-argument": args.schema(named) satisfies Schema };
  const { name, strict } = args.details;
  return { ...(name === undefined ? {} : { "x-arguments": name }), ...(strict === true ? { "x-strict": true } : {}) };
}

function errorsOf(errors: Record<string, string>): object[] {
  return Object.entries(errors).map(([message, data]) => ({ code: -32010, message, data }));
}

function described(description: string | undefined): object {
  return description === undefined ? {} : { description };
}

function kebab(key: string): string {
  return key.replace(/_/g, "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

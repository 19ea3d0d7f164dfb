// Types of payloads: at once a TypeScript type, a JSON Schema for the description, and a check of what arrives.
//
// There is nothing here that Weir could not describe: the builder has exactly the keywords of `docs/contracts.md`.

import { isType, repeated } from "./names.js";

/** A JSON Schema. */
export type Schema = boolean | { [keyword: string]: unknown };

/** Named types, by name. */
export type Schemas = Map<string, Schema>;

/** What JSON a value is. `T` is its type in TypeScript. */
export class Type<T> {
  declare readonly type: T;

  /** @internal */
  constructor(
    /** The schema, with `$ref` to named types, which it adds to the map. @internal */
    readonly schema: (named: Schemas) => Schema,
    /** What is wrong with a value, from its path on; undefined if it fits. @internal */
    readonly fault: (value: unknown, path: string) => string | undefined,
    /** @internal */
    readonly details: { name?: string; doc?: string; fields?: Fields; strict?: boolean; optional?: boolean } = {},
    /** What the program gets of a value that fits and that nobody else has. @internal */
    readonly read: (value: any) => T = asItIs,
  ) {}

  /** The same type, described: for a field, an argument, or a named type. */
  doc(text: string): this {
    const schema = (named: Schemas) => {
      const plain = this.schema(named);
      if (typeof plain === "boolean" || "$ref" in plain) return plain;
      return { description: text, ...plain };
    };
    return new Type<T>(schema, this.fault, { ...this.details, doc: text }, this.read) as this;
  }
}

const asItIs = (value: any): any => value;

/** The fields of an object. */
export type Fields = Record<string, Type<any>>;

/** A field that can be absent. */
export interface OptionalType<T> extends Type<T | undefined> {
  readonly isOptional: true;
}

/** The type in TypeScript: `type Name = Infer<typeof Name>`. */
export type Infer<T extends Type<any>> = T["type"];

type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K] extends OptionalType<any> ? K : never }[keyof F];
type Simplify<T> = { [K in keyof T]: T[K] } & {};

/** The object with these fields. */
export type ObjectOf<F extends Fields> = Simplify<
  { [K in Exclude<keyof F, OptionalKeys<F>>]: F[K]["type"] } & {
    [K in OptionalKeys<F>]?: Exclude<F[K]["type"], undefined>;
  }
>;

/** Bounds of a number. */
export interface NumberBounds {
  minimum?: number;
  maximum?: number;
}

/** Bounds of a text, in characters. `format` is for people: it is not checked. */
export interface StringBounds {
  minLength?: number;
  maxLength?: number;
  format?: string;
}

/** Bounds of a list. */
export interface ArrayBounds {
  minItems?: number;
  maxItems?: number;
}

/** Options of an object. */
export interface ObjectOptions {
  /** Fields that are not listed are refused. By default they are ignored, so that later versions can have more. */
  strict?: boolean;
}

function object<F extends Fields>(fields: F, options?: ObjectOptions): Type<ObjectOf<F>>;
function object<F extends Fields>(name: string, fields: F, options?: ObjectOptions): Type<ObjectOf<F>>;
function object(...given: any[]): Type<any> {
  const [name, fields, { strict = false } = {}] =
    typeof given[0] === "string"
      ? (given as [string, Fields, ObjectOptions?])
      : [undefined, ...(given as [Fields, ObjectOptions?])];
  if (name !== undefined && !isType(name))
    throw new TypeError(`\`${name}\` is no name of a type: it must be of letters, digits, \`.\`, \`_\` and \`-\``);
  const plain = (named: Schemas): Schema => ({
    type: "object",
    properties: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.schema(named)])),
    required: Object.keys(fields).filter((key) => fields[key]?.details.optional !== true),
    ...(strict ? { additionalProperties: false } : {}),
  });
  const fault = (value: unknown, path: string): string | undefined => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return `\`${path}\` is no object`;
    for (const [key, field] of Object.entries(fields)) {
      const found = Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
      if (found === undefined) {
        if (field.details.optional !== true) return `\`${path}.${key}\` is missing`;
      } else {
        const wrong = field.fault(found, `${path}.${key}`);
        if (wrong !== undefined) return wrong;
      }
    }
    const unknown = strict ? Object.keys(value).find((key) => !Object.hasOwn(fields, key)) : undefined;
    return unknown === undefined ? undefined : `\`${path}.${unknown}\` is unknown`;
  };
  const read = (value: Record<string, unknown>) => {
    for (const key of Object.keys(value)) {
      if (!Object.hasOwn(fields, key)) delete value[key];
      else value[key] = fields[key]!.read(value[key]);
    }
    // An absent field such as `constructor` is not what every object inherits.
    for (const key of Object.keys(fields)) if (!Object.hasOwn(value, key) && key in value) value[key] = undefined;
    return value;
  };
  return new NamedType(plain, fault, { ...(name === undefined ? {} : { name }), fields, strict }, read);
}

function fieldsOf(schema: Schema): string {
  return JSON.stringify(typeof schema === "boolean" ? schema : { ...schema, description: undefined });
}

/** A type that the description lists under its name. */
class NamedType extends Type<any> {
  constructor(
    plain: (named: Schemas) => Schema,
    fault: Type<any>["fault"],
    details: Type<any>["details"],
    read: Type<any>["read"],
  ) {
    super(
      (named) => {
        const { name, doc } = details;
        const described = (): Schema => {
          const schema = plain(named);
          return doc === undefined || typeof schema === "boolean" ? schema : { description: doc, ...schema };
        };
        if (name === undefined) return described();
        const known = named.get(name);
        // Its place, before the types inside it.
        if (known === undefined) named.set(name, true);
        const schema = described();
        if (known === undefined) named.set(name, schema);
        else if (fieldsOf(known) !== fieldsOf(schema))
          throw new TypeError(`two types are called \`${name}\`, and have different fields`);
        return { $ref: `#/components/schemas/${name}` };
      },
      fault,
      details,
      read,
    );
    this.plain = plain;
  }

  private readonly plain: (named: Schemas) => Schema;

  override doc(text: string): this {
    return new NamedType(this.plain, this.fault, { ...this.details, doc: text }, this.read) as this;
  }
}

/** Makers of types. */
export const t = {
  /** Any JSON. Without the keys `__proto__`. */
  any: (): Type<any> =>
    new Type(
      () => true,
      (value, path) => (allFinite(value) ? undefined : `\`${path}\` has a number that is not finite`),
      {},
      withoutProto,
    ),
  boolean: (): Type<boolean> =>
    new Type(
      () => ({ type: "boolean" }),
      (value, path) => (typeof value === "boolean" ? undefined : `\`${path}\` is no boolean`),
    ),
  /** Text. */
  string: (bounds: StringBounds = {}): Type<string> =>
    new Type(
      bounded(isLength, [bounds.minLength, bounds.maxLength], () => ({ type: "string", ...bounds })),
      (value, path) => {
        if (typeof value !== "string") return `\`${path}\` is no text`;
        const length = bounds.minLength === undefined && bounds.maxLength === undefined ? 0 : [...value].length;
        return outside(length, bounds.minLength, bounds.maxLength, `\`${path}\` has ${length} characters`);
      },
    ),
  /** A number, whole or not. */
  number: (bounds: NumberBounds = {}): Type<number> =>
    new Type(
      bounded(Number.isFinite, [bounds.minimum, bounds.maximum], () => ({ type: "number", ...bounds })),
      (value, path) => {
        if (typeof value !== "number") return `\`${path}\` is no number`;
        if (!Number.isFinite(value)) return `\`${path}\` is ${value}, which is not finite`;
        return outside(value, bounds.minimum, bounds.maximum, `\`${path}\` is ${value}`);
      },
    ),
  /** A whole number. Above 2⁵³ it loses digits. */
  integer: (bounds: NumberBounds = {}): Type<number> =>
    new Type(
      bounded(Number.isSafeInteger, [bounds.minimum, bounds.maximum], () => ({ type: "integer", ...bounds })),
      (value, path) => {
        if (!Number.isInteger(value)) return `\`${path}\` is no whole number`;
        return outside(value as number, bounds.minimum, bounds.maximum, `\`${path}\` is ${value}`);
      },
    ),
  /** One of these words. */
  words: <const W extends readonly [string, ...string[]]>(...words: W): Type<W[number]> =>
    new Type(
      () => {
        const [twice] = repeated([...words]);
        if (twice !== undefined) throw new TypeError(`the word \`${twice}\` is there twice`);
        return { enum: [...words] };
      },
      (value, path) =>
        words.includes(value as string)
          ? undefined
          : `\`${path}\` is none of ${words.map((word) => `\`${word}\``).join(", ")}`,
    ),
  /** A list. */
  array: <T>(items: Type<T>, bounds: ArrayBounds = {}): Type<T[]> =>
    new Type(
      bounded(isLength, [bounds.minItems, bounds.maxItems], (named) => ({
        type: "array",
        items: items.schema(named),
        ...bounds,
      })),
      (value, path) => {
        if (!Array.isArray(value)) return `\`${path}\` is no list`;
        for (const [index, item] of value.entries()) {
          const wrong = items.fault(item, `${path}[${index}]`);
          if (wrong !== undefined) return wrong;
        }
        return outside(value.length, bounds.minItems, bounds.maxItems, `\`${path}\` has ${value.length} items`);
      },
      {},
      (value: unknown[]) => {
        for (const [index, item] of value.entries()) value[index] = items.read(item);
        return value as T[];
      },
    ),
  /** A map from texts to values. Without the key `__proto__`. */
  record: <T>(values: Type<T>): Type<Record<string, T>> =>
    new Type(
      (named) => ({ type: "object", additionalProperties: values.schema(named) }),
      (value, path) => {
        if (typeof value !== "object" || value === null || Array.isArray(value)) return `\`${path}\` is no object`;
        for (const [key, item] of Object.entries(value)) {
          const wrong = values.fault(item, `${path}.${key}`);
          if (wrong !== undefined) return wrong;
        }
        return undefined;
      },
      {},
      (value: Record<string, unknown>) => {
        delete value["__proto__"];
        for (const [key, item] of Object.entries(value)) value[key] = values.read(item);
        return value as Record<string, T>;
      },
    ),
  /** An object. With a name, the description lists it as a type. The program gets the fields that are listed, and no others. */
  object,
  /** The value, or null. */
  nullable: <T>(type: Type<T>): Type<T | null> =>
    new Type(
      (named) => ({ anyOf: [type.schema(named), { type: "null" }] }),
      (value, path) => (value === null ? undefined : type.fault(value, path)),
      {},
      (value) => (value === null ? null : type.read(value)),
    ),
  /** One of these types: the first that fits. So put a type with more fields before one that has only some of them. */
  union: <const U extends readonly [Type<any>, ...Type<any>[]]>(...types: U): Type<U[number]["type"]> =>
    new Type(
      (named) => ({ anyOf: types.map((type) => type.schema(named)) }),
      (value, path) =>
        types.some((type) => type.fault(value, path) === undefined) ? undefined : `\`${path}\` fits none of its types`,
      {},
      (value) => types.find((type) => type.fault(value, "$") === undefined)?.read(value),
    ),
  /** A field that can be absent. */
  optional: <T>(type: Type<T>): OptionalType<T> =>
    new Type<any>(type.schema, type.fault, { ...type.details, optional: true }, type.read) as OptionalType<T>,
} as const;

/** The schema, if Main can read its bounds. */
function bounded(
  fits: (bound: number) => boolean,
  bounds: (number | undefined)[],
  schema: Type<unknown>["schema"],
): Type<unknown>["schema"] {
  const unfit = bounds.find((bound) => bound !== undefined && !fits(bound));
  if (unfit !== undefined) throw new TypeError(`${unfit} is no bound of this type`);
  return schema;
}

function isLength(bound: number): boolean {
  return Number.isSafeInteger(bound) && bound >= 0;
}

function outside(value: number, least: number | undefined, most: number | undefined, is: string): string | undefined {
  if (least !== undefined && value < least) return `${is}, under the least, ${least}`;
  if (most !== undefined && value > most) return `${is}, over the most, ${most}`;
  return undefined;
}

/** Whether all numbers in some JSON are finite: `1e400` is not. */
function allFinite(json: unknown): boolean {
  for (const value of inside(json)) if (typeof value === "number" && !Number.isFinite(value)) return false;
  return true;
}

/** `Object.assign` would take such a key for the prototype. */
function withoutProto(json: unknown): unknown {
  for (const value of inside(json)) if (Object.hasOwn(Object(value), "__proto__")) delete (value as any)["__proto__"];
  return json;
}

/** Some JSON, and all that is in it, however deep. */
function* inside(json: unknown): Generator<unknown> {
  const open = [json];
  while (open.length > 0) {
    const value = open.pop();
    yield value;
    if (typeof value === "object" && value !== null) for (const item of Object.values(value)) open.push(item);
  }
}

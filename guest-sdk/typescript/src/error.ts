// Why a message failed: the closed set of `weir:iec/types.error`.

/** A case of `weir:iec/types.error`. */
export type Case =
  | "permission-denied"
  | "unknown-contract"
  | "no-provider"
  | "not-ready"
  | "timeout"
  | "overloaded"
  | "peer-gone"
  | "trapped"
  | "limit-exceeded"
  | "would-deadlock"
  | "too-large"
  | "invalid"
  | "handler";

/** An error as the bindings of `weir:iec` have it. */
export type WireError =
  | { tag: "timeout" | "peer-gone" | "trapped"; val?: undefined }
  | {
      tag: "permission-denied" | "unknown-contract" | "no-provider" | "not-ready" | "overloaded" | "invalid";
      val: string;
    }
  | { tag: "limit-exceeded"; val: { name: string; used: bigint; allowed: bigint } }
  | { tag: "would-deadlock"; val: string[] }
  | { tag: "too-large"; val: { bytes: bigint; allowed: bigint } }
  | { tag: "handler"; val: { code: string; message: string } };

/** The least an error tells of itself in the answer to a caller. */
export interface HandlerError {
  code: string;
  message: string;
}

/** Why a message was not delivered or answered. If a handler throws it, the caller gets a {@link Failure} with its code. */
export class WeirError extends Error {
  override name = "WeirError";

  constructor(readonly wire: WireError) {
    super(text(wire));
  }

  /** The case's name in `iec.wit`, such as `no-provider`. */
  get case(): Case {
    return this.wire.tag;
  }

  /** A word for programs: the provider's code, else the case. */
  get code(): string {
    return this.wire.tag === "handler" ? this.wire.val.code : this.wire.tag;
  }
}

/** The provider's own error: a short word of the contract for programs, and a text for people. */
export class Failure extends WeirError {
  override name = "Failure";

  constructor(code: string, message = "") {
    super({ tag: "handler", val: { code, message } });
    this.message = message;
  }
}

/** The error of a failed import, whose exception has it as `payload`. */
export function fromImport(thrown: unknown): unknown {
  const payload = (thrown as { payload?: WireError } | undefined)?.payload;
  return payload?.tag === undefined ? thrown : fromWire(payload);
}

export function fromWire(wire: WireError): WeirError {
  return wire.tag === "handler" ? new Failure(wire.val.code, wire.val.message) : new WeirError(wire);
}

/** Calls an import. What it throws is a {@link WeirError}. */
export function imported<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    throw fromImport(thrown);
  }
}

/** What the caller of a failed handler is told. An exception that is no {@link WeirError} is none of the caller's business. */
export function asAnswer(thrown: unknown): HandlerError {
  if (thrown instanceof Failure) return { code: cut(thrown.code, 64), message: thrown.message };
  if (thrown instanceof WeirError) return { code: thrown.code, message: thrown.message };
  return { code: "unexpected", message: "the handler failed unexpectedly: the extension's log says where" };
}

/** An exception for the log: with the functions it came through, unless it is an error that was meant. */
export function forLog(thrown: unknown): string {
  if (thrown instanceof WeirError)
    return thrown instanceof Failure ? `${thrown.code}: ${thrown.message}` : thrown.message;
  if (!(thrown instanceof Error)) return `${String(thrown)} was thrown, which is no Error`;
  const head = `${thrown.name}: ${thrown.message}`;
  const stack = thrown.stack ?? "";
  // The stack of some engines begins with the message, that of others does not.
  return stack.startsWith(head) ? stack : `${head}\n${stack}`;
}

/** Why the extension fails, for Main. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

export function timedOut(): WeirError {
  return new WeirError({ tag: "timeout" });
}

export function invalid(message: string): WeirError {
  return new WeirError({ tag: "invalid", val: message });
}

function text(wire: WireError): string {
  switch (wire.tag) {
    case "permission-denied":
      return `permission denied: ${wire.val}`;
    case "unknown-contract":
      return `unknown contract \`${wire.val}\``;
    case "no-provider":
      return `no provider: ${wire.val}`;
    case "not-ready":
      return `not ready: ${wire.val}`;
    case "timeout":
      return "timed out";
    case "overloaded":
      return `\`${wire.val}\` is full`;
    case "peer-gone":
      return "the receiver stopped before it answered";
    case "trapped":
      return "the receiver trapped with the request in hand";
    case "limit-exceeded":
      return `limit \`${wire.val.name}\` exceeded: ${wire.val.used} of ${wire.val.allowed}`;
    case "would-deadlock":
      return `would deadlock: ${wire.val.join(" -> ")}`;
    case "too-large":
      return `payload of ${wire.val.bytes} bytes is over the limit of ${wire.val.allowed}`;
    case "invalid":
      return `invalid: ${wire.val}`;
    case "handler":
      return wire.val.message;
  }
}

function cut(text: string, bytes: number): string {
  const encoded = new TextEncoder().encode(text);
  return encoded.length <= bytes ? text : new TextDecoder().decode(encoded.slice(0, bytes)).replace(/\uFFFD$/, "");
}

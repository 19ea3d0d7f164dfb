// Lines for Main's log, under this extension's id.

import { forLog } from "./error.js";
import { currentHost, type Level } from "./host.js";

/** Named values of a line. */
export type LogFields = Record<string, unknown>;

const writer =
  (level: Level) =>
  (message: string, fields: LogFields = {}): void =>
    write(level, message, fields);

/**
 * Writes lines with fields to Main's log. `console` writes there, too, without fields.
 *
 * At most 4096 bytes of a message and 32 fields are kept.
 */
export const log = {
  /** For following one request through the code. */
  trace: writer("trace"),
  /** For the developer of the extension. */
  debug: writer("debug"),
  /** For the operator. */
  info: writer("info"),
  /** Something is wrong and was dealt with. */
  warn: writer("warn"),
  /** Something is wrong and was not dealt with. */
  error: writer("error"),
} as const;

function write(level: Level, message: string, fields: LogFields): void {
  const host = currentHost();
  const listed = Object.entries(fields).map(([name, value]) => ({ name, value: shown(value) }));
  if (host !== undefined) host.log(level, message, listed);
  // While it is built, and in tests without a harness.
  else console.error(level, message, ...listed.map(({ name, value }) => `${name}=${value}`));
}

/** A value as a line of text. */
function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return forLog(value);
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return String(value);
  }
}

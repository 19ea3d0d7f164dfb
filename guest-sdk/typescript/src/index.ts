/**
 * Write extensions of Weir in TypeScript.
 *
 * @module
 */

export {
  Contract,
  Operation,
  Queue,
  Topic,
  bytesOperation,
  bytesQueue,
  bytesTopic,
  contract,
  operation,
  queue,
  topic,
  type OperationTypes,
} from "./contract.js";
export { Context, type CallOptions, type Job, type Sent, type TakeOptions, type Timeout } from "./context.js";
export { Failure, WeirError, type Case, type WireError } from "./error.js";
export { exit } from "./exit.js";
export { Extension, extension, type Event } from "./extension.js";
export { listDir, readFile, readTextFile, removeFile, writeFile } from "./files.js";
export type { Level, Receipt } from "./host.js";
export { log, type LogFields } from "./log.js";
export type { Dir, Manifest } from "./manifest.js";
export { Type, t, type Fields, type Infer, type OptionalType, type Schema } from "./types.js";

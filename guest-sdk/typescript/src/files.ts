// Files below the directories that the operator granted: the manifest's `dirs`.

import { Failure } from "./error.js";
import { currentHost, type FileSystem } from "./host.js";

/** The whole content of a file. Throws a {@link Failure} with the code `io`, here and below. */
export function readFile(path: string): Uint8Array {
  return files(path).read(path);
}

/** The whole content of a file, as UTF-8. */
export function readTextFile(path: string): string {
  return new TextDecoder().decode(readFile(path));
}

/** Replaces the content of a file, or makes the file. */
export function writeFile(path: string, content: Uint8Array | string): void {
  files(path).write(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
}

/** The names in a directory. */
export function listDir(path: string): string[] {
  return files(path).list(path);
}

/** Removes a file. */
export function removeFile(path: string): void {
  files(path).remove(path);
}

function files(path: string): FileSystem {
  const host = currentHost();
  if (host === undefined) throw new Failure("io", `${path}: there are no files: the extension does not run`);
  return host.files;
}

// Files in a component, by `wasi:filesystem`.

import { getDirectories } from "wasi:filesystem/preopens@0.2.12";
import type { Descriptor } from "wasi:filesystem/types@0.2.12";

import { Failure } from "../error.js";
import type { FileSystem } from "../host.js";

const CHUNK = 64n * 1024n;

let granted: [Descriptor, string][] | undefined;

export const files: FileSystem = {
  read: (path) =>
    opened(path, {}, { read: true }, (file) => {
      const chunks: Uint8Array[] = [];
      let length = 0;
      for (let atEnd = false; !atEnd;) {
        let chunk: Uint8Array;
        [chunk, atEnd] = file.read(CHUNK, BigInt(length));
        chunks.push(chunk);
        length += chunk.length;
      }
      const whole = new Uint8Array(length);
      let at = 0;
      for (const chunk of chunks) {
        whole.set(chunk, at);
        at += chunk.length;
      }
      return whole;
    }),
  write: (path, content) =>
    opened(path, { create: true, truncate: true }, { write: true }, (file) => {
      for (let at = 0; at < content.length;) {
        at += Number(file.write(content.subarray(at, at + Number(CHUNK)), BigInt(at)));
      }
    }),
  list: (path) =>
    opened(path, { directory: true }, { read: true }, (directory) => {
      const entries = directory.readDirectory();
      const names: string[] = [];
      for (let entry = entries.readDirectoryEntry(); entry !== undefined; entry = entries.readDirectoryEntry())
        names.push(entry.name);
      entries[Symbol.dispose]();
      return names;
    }),
  remove: (path) => {
    const [directory, name] = place(path);
    asFailure(path, () => directory.unlinkFileAt(name));
  },
};

function opened<T>(
  path: string,
  how: { create?: boolean; truncate?: boolean; directory?: boolean },
  flags: { read?: boolean; write?: boolean },
  use: (file: Descriptor) => T,
): T {
  const [directory, name] = place(path);
  return asFailure(path, () => {
    const file = directory.openAt({ symlinkFollow: true }, name, how, flags);
    try {
      return use(file);
    } finally {
      file[Symbol.dispose]();
    }
  });
}

/** The granted directory that a path is in, and the path from there. */
function place(path: string): [Descriptor, string] {
  granted ??= getDirectories();
  const around = granted.filter(([, guest]) => path === guest || path.startsWith(guest === "/" ? guest : `${guest}/`));
  const innermost = around.sort(([, one], [, other]) => other.length - one.length)[0];
  if (innermost === undefined) throw new Failure("io", `${path}: in no directory that the operator granted`);
  const [directory, guest] = innermost;
  return [directory, path.slice(guest.length).replace(/^\/+/, "") || "."];
}

function asFailure<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (thrown) {
    const code = (thrown as { payload?: unknown }).payload;
    throw typeof code === "string" ? new Failure("io", `${path}: ${code.replace(/-/g, " ")}`) : thrown;
  }
}

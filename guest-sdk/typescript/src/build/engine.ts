// The engine of componentize-js, StarlingMonkey, with less memory.
//
// It collects garbage first when its objects take 27 MiB or its buffers 38 MiB, and lets new objects take 64 MiB. So it grows
// to 75 MiB whatever an extension does, which is over its limit on most devices. There is no option for that, and the figures
// are constants of its code: so they are replaced there.

const MIB = 2 ** 20;

/** Pairs of 32-bit figures that the engine's code stores as one constant: the lower, the upper, and those in their place. */
const FIGURES: [string, [number, number], [number, number]][] = [
  ["objects before the first collection", [27 * MIB, 100 * MIB], [4 * MIB, 100 * MIB]],
  ["buffers before the first collection", [38 * MIB, MIB], [6 * MIB, MIB]],
  ["new objects", [MIB / 4, 64 * MIB], [MIB / 4, MIB]],
];

/** The WebAssembly instruction `i64.const`. */
const I64_CONST = 0x42;

/** The engine with these figures. Throws if it is another engine. */
export function withLessMemory(engine: Uint8Array): Uint8Array {
  const patched = Buffer.from(engine);
  for (const [what, from, to] of FIGURES) {
    const old = Buffer.from([I64_CONST, ...signedLeb128(pair(from))]);
    const at = patched.indexOf(old);
    if (at < 0 || patched.indexOf(old, at + 1) >= 0) {
      throw new Error(
        `the engine of componentize-js is not that of version 0.23.0: its figure for ${what} is not where it was`,
      );
    }
    patched.set(signedLeb128(pair(to), old.length - 1), at + 1);
  }
  return patched;
}

function pair([low, high]: [number, number]): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

/** With a length, it is padded to that. */
function signedLeb128(value: bigint, length?: number): number[] {
  const bytes: number[] = [];
  for (;;) {
    const byte = Number(value & 0x7fn);
    value >>= 7n;
    const isLast = length === undefined ? value === 0n && (byte & 0x40) === 0 : bytes.length === length - 1;
    bytes.push(isLast ? byte : byte | 0x80);
    if (isLast) return bytes;
  }
}

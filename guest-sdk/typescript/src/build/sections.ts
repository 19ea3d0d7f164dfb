// Custom sections of a component.

/** The component with a custom section of this name at its end. */
export function withSection(component: Uint8Array, name: string, content: Uint8Array): Uint8Array {
  const encoded = new TextEncoder().encode(name);
  const length = leb128(encoded.length);
  const size = leb128(length.length + encoded.length + content.length);
  return Buffer.concat([component, Uint8Array.of(0), size, length, encoded, content]);
}

function leb128(value: number): Uint8Array {
  const bytes: number[] = [];
  for (;;) {
    const low = value % 128;
    value = Math.floor(value / 128);
    if (value === 0) return Uint8Array.from([...bytes, low]);
    bytes.push(low + 128);
  }
}

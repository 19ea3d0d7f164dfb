// Arguments and answers as words.

import { WeirError } from "weir-sdk";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const encode = (text: string): Uint8Array => encoder.encode(text);
export const decode = (payload: Uint8Array): string => decoder.decode(payload);

/** So many words. The last may contain spaces, and may be empty. */
export function words(payload: Uint8Array, count: number): string[] {
  const parts = decode(payload).split(" ");
  const taken = parts.slice(0, count - 1);
  while (taken.length < count - 1) taken.push("");
  return [...taken, parts.slice(count - 1).join(" ")];
}

/** `ok`, with what the function gives, or the error that it throws. */
export async function outcome(act: () => unknown): Promise<Uint8Array> {
  try {
    return encode(ok(await act()));
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    return encode(shown(error));
  }
}

export function ok(value: unknown): string {
  return value === undefined || value === "" ? "ok" : `ok ${value}`;
}

export function shown({ wire }: WeirError): string {
  switch (wire.tag) {
    case "timeout":
    case "peer-gone":
    case "trapped":
      return `error ${wire.tag}`;
    case "limit-exceeded":
      return `error ${wire.tag} ${wire.val.name} ${wire.val.used} ${wire.val.allowed}`;
    case "would-deadlock":
      return `error ${wire.tag} ${wire.val.join(" ")}`;
    case "too-large":
      return `error ${wire.tag} ${wire.val.bytes} ${wire.val.allowed}`;
    case "handler":
      return `error ${wire.tag} ${wire.val.code} ${wire.val.message}`;
    default:
      return `error ${wire.tag} ${wire.val}`;
  }
}

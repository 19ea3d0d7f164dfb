import { currentHost } from "./host.js";

/** Ends this instance at once, with everything in hand: a code that is not 0 counts as a failure. */
export function exit(code: number): never {
  const host = currentHost();
  if (host === undefined) throw new Error("there is no instance to end: the extension does not run");
  return host.exit(code);
}

// What the top level of a program cannot call.
//
// It runs while the component is built, in an engine without random numbers and without this clock. The engine ends there, and
// names no line. Here, in Node, it is known who calls.

const REFUSED: [owner: object, name: string, shown: string][] = [
  [Math, "random", "Math.random"],
  [crypto, "getRandomValues", "crypto.getRandomValues"],
  [crypto, "randomUUID", "crypto.randomUUID"],
  [performance, "now", "performance.now"],
];

/** Does something, in which these functions throw an error that says what to do. */
export async function refused<T>(does: () => Promise<T>): Promise<T> {
  const restore = REFUSED.map(([owner, name, shown]) => refuse(owner, name, shown));
  try {
    return await does();
  } finally {
    for (const one of restore) one();
  }
}

function refuse(owner: object, name: string, shown: string): () => void {
  const was = Object.getOwnPropertyDescriptor(owner, name);
  const value = () => {
    const error = new Error(
      `\`${shown}\` at the top level, which runs when the component is built, and for all instances alike: ` +
        "call it in `onStart` or in a handler",
    );
    // The first line of the trace is that of the caller.
    Error.captureStackTrace(error, value);
    throw error;
  };
  Object.defineProperty(owner, name, { configurable: true, writable: true, value });
  return () => {
    if (was === undefined) Reflect.deleteProperty(owner, name);
    else Object.defineProperty(owner, name, was);
  };
}

// Rules for names: those of Main.

/** An extension, or a queue; an extension is not called `main`. */
export function isId(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,63}$/.test(name);
}

export function isContract(name: string): boolean {
  const version = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*@(0|[1-9][0-9]{0,4})$/.exec(name)?.[1];
  return version !== undefined && Number(version) < 2 ** 16 && name.length <= 128;
}

/** Printable ASCII without space and `/`. */
export function isOperation(name: string): boolean {
  return /^[!-.0-~]{1,128}$/.test(name);
}

export function isPattern(name: string): boolean {
  const isDotted = /^(?:(?:[A-Za-z0-9_-]+|\*)\.)*(?:[A-Za-z0-9_-]+|\*|>)$/.test(name);
  return isDotted && name.length <= 256 && name.split(".").length <= 16;
}

/** A type in a description: OpenRPC's rule. */
export function isType(name: string): boolean {
  return /^[A-Za-z0-9._-]+$/.test(name);
}

/** Names that are there more than once. */
export function repeated(names: string[]): string[] {
  return names.filter((name, place) => names.indexOf(name) < place);
}

/** Whether every topic of `narrow` is one of `wide`. */
export function covers(wide: string, narrow: string): boolean {
  const [pattern, topic] = [wide.split("."), narrow.split(".")];
  for (const [index, segment] of pattern.entries()) {
    if (segment === ">") return topic.length > index;
    const other = topic[index];
    if (other === undefined || other === ">" || (segment !== "*" && segment !== other)) return false;
  }
  return pattern.length === topic.length;
}

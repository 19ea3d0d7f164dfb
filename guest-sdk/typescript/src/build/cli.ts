#!/usr/bin/env node
// `weir-js`: builds extensions.

import { parseArgs } from "node:util";

import { BuildError, build, findEntry, packageOf } from "./build.js";

const HELP = `Build an extension of Weir that is written in TypeScript or JavaScript

Usage: weir-js build [ENTRY] [--out FILE]

Arguments:
  [ENTRY]       The module whose default export is the extension; by default src/extension.ts

Options:
  --out FILE    The component to write; by default dist/ID.wasm, with the name of the package as ID
  -h, --help    Print help

Types are not checked: \`tsc\` does that.
`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { out: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
  const [command, entry, ...rest] = positionals;
  if (values.help === true) {
    process.stdout.write(HELP);
    return 0;
  }
  if (command !== "build" || rest.length > 0) {
    process.stderr.write(HELP);
    return 2;
  }
  const out = values.out ?? `dist/${(await packageOf(process.cwd())).id}.wasm`;
  const size = await build({ entry: entry ?? findEntry(process.cwd()), out });
  process.stdout.write(`${out}  ${(size / 2 ** 20).toFixed(1)} MiB\n`);
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  const isMeant =
    error instanceof BuildError || (error as NodeJS.ErrnoException).code?.startsWith("ERR_PARSE_ARGS") === true;
  process.stderr.write(`error: ${isMeant ? (error as Error).message : ((error as Error).stack ?? error)}\n`);
  process.exitCode = isMeant && !(error instanceof BuildError) ? 2 : 1;
}

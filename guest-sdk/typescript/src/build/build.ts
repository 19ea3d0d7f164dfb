// From the author's program to a component.

import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { build as bundle, type BuildFailure } from "esbuild";

import type { Extension } from "../extension.js";
import { withLessMemory } from "./engine.js";
import { refused } from "./refused.js";
import { withSection } from "./sections.js";

/** An error that the author can do something about: shown without where it came from. */
export class BuildError extends Error {}

export interface BuildOptions {
  /** The module whose default export is the extension. */
  entry: string;
  /** The component to make. */
  out: string;
}

/** The directory of this package. */
const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));

const CANDIDATES = ["src/extension.ts", "src/extension.js", "src/index.ts", "extension.ts", "extension.js"];

/** The entry of a project, if it is where one expects it. */
export function findEntry(directory: string): string {
  const found = CANDIDATES.find((path) => existsSync(join(directory, path)));
  if (found === undefined)
    throw new BuildError(
      `there is no ${CANDIDATES.map((path) => `\`${path}\``).join(", nor ")}: name the module whose default export is the extension`,
    );
  return found;
}

/** Id and version of the project's package. */
export async function packageOf(directory: string): Promise<{ id: string; version: string }> {
  const path = join(directory, "package.json");
  if (!existsSync(path)) return { id: "extension", version: "0.0.0" };
  const { name = "extension", version = "0.0.0" } = JSON.parse(await readFile(path, "utf8"));
  return { id: String(name).replace(/^@[^/]*\//, ""), version: String(version) };
}

/** Builds the component, and writes it. Returns its size in bytes. */
export async function build({ entry, out }: BuildOptions): Promise<number> {
  const directory = process.cwd();
  const path = resolve(directory, entry);
  if (!existsSync(path)) throw new BuildError(`there is no \`${entry}\``);
  const work = await mkdtemp(join(tmpdir(), "weir-js-"));
  try {
    const sections = await describe(path, work, await packageOf(directory));
    const component = await componentOf(path, work);
    const encoder = new TextEncoder();
    const described = [
      ["weir:manifest", JSON.stringify(sections.manifest)],
      ["weir:contracts", sections.contracts],
    ].reduce((bytes, [name, content]) => withSection(bytes, name!, encoder.encode(content)), component);
    const target = resolve(directory, out);
    await mkdir(dirname(target), { recursive: true });
    // A reader sees the whole old file or the whole new one.
    await writeFile(`${target}.new`, described);
    await rename(`${target}.new`, target);
    return described.length;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Runs the author's program here, as far as its top level, to learn what it is. */
async function describe(
  entry: string,
  work: string,
  defaults: { id: string; version: string },
): Promise<ReturnType<Extension["sections"]>> {
  const file = join(work, "described.mjs");
  await bundled(`export { default } from ${JSON.stringify(entry)};`, dirname(entry), file, "inline");
  // A failure names the author's lines.
  process.setSourceMapsEnabled(true);
  let extension: Partial<Extension> | undefined;
  try {
    extension = (await refused(() => import(pathToFileURL(file).href))).default;
  } catch (error) {
    throw new BuildError(`the program fails before it is an extension: ${(error as Error).stack ?? error}`);
  }
  if (typeof extension?.sections !== "function") {
    throw new BuildError("the program's default export is no extension: write `export default extension({ … })`");
  }
  try {
    return extension.sections(defaults);
  } catch (error) {
    throw new BuildError((error as Error).message.replace(/^invalid: /, ""));
  }
}

async function componentOf(entry: string, work: string): Promise<Uint8Array> {
  const guest = join(PACKAGE, "dist/guest.js");
  const program = `
    import extension from ${JSON.stringify(entry)};
    import { main } from ${JSON.stringify(guest)};
    export const run = { run: () => main(extension) };
  `;
  const sourcePath = join(work, "extension.js");
  await bundled(program, dirname(entry), sourcePath);
  const engine = join(work, "engine.wasm");
  await writeFile(engine, withLessMemory(await readFile(enginePath())));
  try {
    // Here, so that what it lacks is an error of the build.
    const { componentize } = await import("@bytecodealliance/componentize-js");
    const { component } = await componentize({
      sourcePath,
      engine,
      witPath: join(PACKAGE, "wit"),
      worldName: "extension",
      disableFeatures: ["http", "fetch-event"],
    });
    return component;
  } catch (error) {
    throw new BuildError(`componentize-js cannot make a component of the program: ${(error as Error).message}`);
  }
}

function enginePath(): string {
  return fileURLToPath(
    new URL("../lib/starlingmonkey_embedding.wasm", import.meta.resolve("@bytecodealliance/componentize-js")),
  );
}

/** Bundles a program into one module. Names of functions stay, for the traces of failures. */
async function bundled(
  contents: string,
  resolveDir: string,
  outfile: string,
  sourcemap: "inline" | false = false,
): Promise<void> {
  try {
    await bundle({
      stdin: { contents, resolveDir, sourcefile: "weir-js" },
      outfile,
      sourcemap,
      bundle: true,
      format: "esm",
      target: "es2022",
      platform: "neutral",
      mainFields: ["module", "main"],
      conditions: ["import"],
      external: ["weir:*", "wasi:*"],
      // The extension, and the SDK below it, are one: also if the project links to the SDK.
      alias: { "weir-sdk": join(PACKAGE, "dist/index.js") },
      keepNames: true,
      legalComments: "none",
      logLevel: "silent",
    });
  } catch (error) {
    const failures = (error as Partial<BuildFailure>).errors ?? [];
    if (failures.length === 0) throw error;
    throw new BuildError(
      failures
        .map(
          ({ text, location }) =>
            `${location === null ? "" : `${location.file}:${location.line}:${location.column + 1}: `}${text}${hint(text)}`,
        )
        .join("\n"),
    );
  }
}

function hint(text: string): string {
  const module = /Could not resolve "(node:[^"]+|fs|path|http|https|net|os|child_process)"/.exec(text)?.[1];
  return module === undefined
    ? ""
    : `: an extension does not run in Node, and has no \`${module}\`; the SDK has files, timers and calls`;
}

// Makes one file of the sources, and of that the component of the world in `wit`.

import { componentize } from "@bytecodealliance/componentize-js";
import { build } from "esbuild";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";

await build({ entryPoints: ["src/server.ts"], bundle: true, format: "esm", outfile: "dist/bundle.js" });
const { component } = await componentize({
  sourcePath: resolve("dist/bundle.js"),
  witPath: resolve("wit"),
  worldName: "server",
});
await writeFile("dist/{{name}}.wasm", component);

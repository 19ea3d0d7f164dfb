// Makes the component of the world in `wit`.

import { componentize } from "@bytecodealliance/componentize-js";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";

const { component } = await componentize({
  sourcePath: resolve("dist/greeter.js"),
  witPath: resolve("wit"),
  worldName: "plugin",
});
await writeFile("dist/{{name}}.wasm", component);

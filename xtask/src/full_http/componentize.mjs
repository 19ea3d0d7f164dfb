// Makes a component of JavaScript that serves by the event `fetch`, as the documentation of componentize-js has it.
// Arguments: the directory of the WIT, and the path of the component.

import { componentize } from "@bytecodealliance/componentize-js";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";

const [wit, output] = process.argv.slice(2);
const sourcePath = resolve("hello.mjs");
await writeFile(
  sourcePath,
  `addEventListener("fetch", (event) =>
    event.respondWith(new Response("hello from " + new URL(event.request.url).pathname + "\\n")));\n`,
);
const { component } = await componentize({ sourcePath, witPath: resolve(wit), worldName: "serve" });
await writeFile(output, component);

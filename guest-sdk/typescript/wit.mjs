// Copies into the package what it shares with the repository: the licence, and the interface with the world of extensions in
// TypeScript.

import { cpSync, mkdirSync, rmSync } from "node:fs";

const at = (path) => new URL(path, import.meta.url);

rmSync(at("wit/"), { recursive: true, force: true });
mkdirSync(at("wit/"));
cpSync(at("../../LICENSE"), at("LICENSE"));
cpSync(at("world.wit"), at("wit/world.wit"));
cpSync(at("../../wit/deps/"), at("wit/deps/"), { recursive: true });
cpSync(at("../../wit/iec.wit"), at("wit/deps/iec.wit"));

// An app that shows the texts of `{{name}}.show`, and publishes in `{{name}}.shown` that it did.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Weir } from "weir-client";
import WebSocket from "ws";

/** A program has its token itself. A page asks its own server for a ticket instead. */
class WithToken extends WebSocket {
  constructor(url: string) {
    const token = process.env.WEIR_TOKEN ?? readFileSync(".weir/token", "utf8").trim();
    super(url, { headers: { authorization: `Bearer ${token}` } });
  }
}

/** A line for people. */
export function shown(sender: string, text: string): string {
  return `${sender} says ${text}`;
}

async function main(): Promise<void> {
  const weir = new Weir(process.env.WEIR_GATEWAY ?? "ws://127.0.0.1:7410", "app:{{name}}", { WebSocket: WithToken });
  weir.on("close", ({ reason, retryInMs }) => console.error(`${reason || "no connection"}: again in ${retryInMs} ms`));
  await weir.subscribe<string>("{{name}}.show", async ({ sender, payload }) => {
    console.log(shown(sender, payload));
    await weir.publish("{{name}}.shown", payload);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

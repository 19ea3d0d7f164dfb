// Runs the compiled `app.ts`. A program has the token itself, and needs no ticket.

import WebSocket from "ws";

globalThis.WebSocket = class extends WebSocket {
  constructor(url) {
    super(url, { headers: { authorization: `Bearer ${process.env.WEIR_TOKEN}` } });
  }
};
const { run } = await import("./app.js");
try {
  await run(process.env.WEIR_GATEWAY, process.env.WEIR_NAME);
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}

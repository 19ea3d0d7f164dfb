// An HTTP server: each request has a new instance of it.

import { respond } from "./respond.js";

interface FetchEvent extends Event {
  request: Request;
  respondWith(response: Response | Promise<Response>): void;
}

addEventListener("fetch", (event) => {
  const { request } = event as FetchEvent;
  (event as FetchEvent).respondWith(respond(request));
});

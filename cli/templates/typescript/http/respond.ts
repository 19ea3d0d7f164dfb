// What the server answers, apart from the component, so that tests reach it.

/** A greeting for the last part of the path. */
export function respond(request: Request): Response {
  if (request.method !== "GET") {
    return new Response("only GET is known here\n", { status: 405 });
  }
  const name = new URL(request.url).pathname.split("/").pop();
  if (!name) {
    return new Response("there is nobody to greet\n", { status: 404 });
  }
  return new Response(`hello, ${name}\n`);
}

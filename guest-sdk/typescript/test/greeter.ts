// The extension that the tests run.

import {
  Failure,
  bytesOperation,
  bytesTopic,
  contract,
  extension,
  operation,
  queue,
  t,
  topic,
  type Infer,
} from "../src/index.js";

export const Name = t
  .object(
    "Name",
    { name: t.string().doc("The person's name."), how: t.optional(t.words("kindly", "loudly")) },
    { strict: true },
  )
  .doc("A person.");
export type Name = Infer<typeof Name>;

export const Greeting = t.object("Greeting", { text: t.string(), number: t.integer({ minimum: 0 }) });

export const storage = contract("storage@1", "Keeps values.", {
  get: operation("A value.", { args: t.object({ key: t.string() }), result: t.nullable(t.string()) }),
});

export const greeter = contract("greeter@1", "Greets people.", {
  greet: operation("Greets a person by name.", {
    args: Name,
    result: Greeting,
    errors: { "no-name": "There is nobody to greet." },
  }),
  greetSlowly: operation("Greets after so many milliseconds.", { args: t.integer(), result: t.string() }),
  names: operation("All names so far.", { result: t.array(t.string()) }),
  echo: bytesOperation("The same bytes."),
  greeted: topic("greeter.greeted", t.string(), "Names, as they are greeted."),
  uploads: queue("uploads", t.object("Upload", { file: t.string() })),
});

export function greeterExtension() {
  const names: string[] = [];
  return extension({
    id: "greeter",
    fulfills: [greeter],
    requires: [storage],
    publishes: [greeter.greeted, "greeter.heard"],
    subscribes: ["people.*"],
    takes: [greeter.uploads],
  })
    .on(greeter.greet, async (context, { name, how }) => {
      if (name === "") throw new Failure("no-name", "there is nobody to greet");
      if (name === "bug") fail_unexpectedly();
      const greeting = (await context.call(storage.get, { key: how ?? "kindly" })) ?? "hello";
      names.push(name);
      context.publish(greeter.greeted, name);
      return { text: `${greeting} ${name}`, number: names.length };
    })
    .on(greeter.greetSlowly, async (context, ms) => {
      await context.sleep(ms);
      return `hello after ${ms} ms`;
    })
    .on(greeter.names, () => names)
    .on(greeter.echo, (_, payload) => payload)
    .onEvent("people.*", async (context, { topic, lost, retained, payload }) => {
      await context.sleep(10);
      context.publish("greeter.heard", { topic, lost: Number(lost), retained, payload });
    })
    .onJob(greeter.uploads, (_, { file }) => {
      if (file === "") throw new Error("no file");
    });
}

export const raw = bytesTopic("raw");

function fail_unexpectedly(): never {
  throw new TypeError("out of cheese");
}

// The contract `{{name}}@1`, for the extension and its callers.

import { contract, operation, t, topic, type Infer } from "weir-sdk";

export const Name = t.object("Name", { name: t.string().doc("The person's name.") }, { strict: true }).doc("A person.");
export type Name = Infer<typeof Name>;

export const Greeting = t
  .object("Greeting", {
    text: t.string().doc("The words of the greeting."),
    number: t.integer({ minimum: 0 }).doc("How many people were greeted so far."),
  })
  .doc("A greeting.");
export type Greeting = Infer<typeof Greeting>;

export const greeter = contract("{{name}}@1", "Greets people.", {
  greet: operation("Greets a person by name.", {
    args: Name,
    result: Greeting,
    errors: { "no-name": "There is nobody to greet." },
  }),
  greeted: topic("{{name}}.greeted", t.string(), "The name of each person that was greeted."),
});

// Greets each caller, and publishes the name.

import { Failure, extension } from "weir-sdk";
import { greeter } from "./contract.js";

let greeted = 0;

// The manifest: what the extension is and needs. It travels in the component; the operator decides.
export default extension({
  fulfills: [greeter],
  publishes: [greeter.greeted],
}).on(greeter.greet, async (context, { name }) => {
  if (name === "") throw new Failure("no-name", "there is nobody to greet");
  greeted += 1;
  context.publish(greeter.greeted, name);
  return { text: `hello, ${name}`, number: greeted };
});

// The functions of the interface in `wit/plugin.wit`. What is thrown is the error of a `result`.

export const greeter = {
  /** A greeting for this name. */
  greet(name: string): string {
    if (name === "") throw "nobody";
    return `hello, ${name}`;
  },
};

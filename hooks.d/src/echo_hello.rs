//! Says hello to the node.

#![expect(clippy::print_stdout, reason = "what a hook prints is in the report")]

use std::process::ExitCode;

fn main() -> ExitCode {
    example_hooks::ended(example_hooks::node().map(|node| println!("hello {node}")))
}

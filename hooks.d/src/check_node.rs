//! Stops the run for a retired node: `$NODE_STATE` is `retired`.

use std::{env, process::ExitCode};

/// The exit code for a retired node. It is an error, so no further hook runs.
const RETIRED: u8 = 7;

fn main() -> ExitCode {
    example_hooks::ended(example_hooks::node().map(|node| check(&node)))
}

fn check(node: &str) {
    if env::var_os("NODE_STATE").is_some_and(|state| state == "retired") {
        eprintln!("the node `{node}` is retired");
        weir_sdk::hook::exit(RETIRED);
    }
}

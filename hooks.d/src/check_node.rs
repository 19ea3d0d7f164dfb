//! Fails for a node that is to have no more hooks: one whose `$NODE_STATE` is `retired`.

use std::{env, process::ExitCode};

/// The exit code: an error.
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

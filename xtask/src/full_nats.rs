//! Bridges beside a real NATS server: their own tests, the demo of a fleet, and whole fleets that are killed and parted.

use std::process::Command;

use anyhow::Result;

use crate::{
    demo::fleet::{self, Programs},
    nats,
    run::{cargo, run},
};

pub(crate) fn check() -> Result<Vec<String>> {
    let mut programs = Programs::build()?;
    let mut skipped = Vec::new();
    match nats::command() {
        Ok(command) => programs.nats = Some(command),
        Err(error) => {
            eprintln!("going on without NATS's own command: {error:#}");
            skipped.push("`nats micro list`: Go cannot build the command".to_owned());
        }
    }
    fleet::show(&programs, true)?;
    let mut tests = cargo(["test", "--workspace", "--test", "fleet"])?;
    // Each has the machine for itself: some of them measure.
    tests.args(["--", "--include-ignored", "--nocapture", "--test-threads", "1"]);
    run(with(&mut tests, &programs))?;
    Ok(skipped)
}

fn with<'c>(command: &'c mut Command, programs: &Programs) -> &'c mut Command {
    command
        .env("WEIR_COMMAND", &programs.weir)
        .env("WEIR_NATS_COMMAND", &programs.bridge)
        .env("WEIR_NATS_SERVER", &programs.server)
        .env("WEIR_PLUGINS", &programs.plugins)
}

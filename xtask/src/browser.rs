//! What a page sees of the gateway: the client's own tests, its types, and the example's app in Chromium.

mod page;

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{
    run::{output, root, run, target_dir},
    setup::{self, CHROMIUM, NODE},
};

pub(crate) const CLIENT: &str = "outside/gateway/client";

/// Reads the client's types. Fetched by `npm`, and by nothing else of Weir.
const TYPESCRIPT: &str = "typescript@5.9.3";

/// Runs all, and returns what it skipped.
pub(crate) fn check() -> Result<Vec<String>> {
    let missing = setup::install(&[&CHROMIUM, &NODE])?;
    ensure!(missing.is_empty(), "first run `{}`", setup::line(&missing));
    run(Command::new("node").args(["--test", "test/"]).current_dir(root()?.join(CLIENT)))?;
    let skipped = types()?;
    page::check()?;
    Ok(skipped)
}

fn types() -> Result<Vec<String>> {
    let directory = target_dir()?.join("typescript");
    let npm = ["install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix"];
    if let Err(error) = output(Command::new("npm").args(npm).arg(&directory).arg(TYPESCRIPT)) {
        eprintln!("going on without the types: {error:#}");
        return Ok(vec![format!("the types: `npm` cannot get {TYPESCRIPT}")]);
    }
    let options =
        ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2023,dom", "--module", "nodenext"];
    let mut tsc = Command::new(directory.join("node_modules/.bin/tsc"));
    run(tsc.args(options).arg("test/types.ts").current_dir(root()?.join(CLIENT)))?;
    Ok(Vec::new())
}

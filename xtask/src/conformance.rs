//! The conformance suite for one language.

use std::process::Command;

use anyhow::Result;

use crate::run::{cargo, run};

/// How many messages of each kind the long run sends, after which the guest's memory must not have grown. TypeScript's
/// interpreter takes 16 minutes for 40,000.
fn many_messages(lang: &str) -> &'static str {
    if lang == "typescript" { "40000" } else { "400000" }
}

/// Builds the language's guest and tests it. With `record`, measures it and writes `docs/languages.md`.
pub(crate) fn test(lang: &str, record: bool, only: Option<&str>) -> Result<()> {
    run(&mut command(lang, record, only)?)
}

/// Builds the language's guest and tests it with many messages of each kind.
pub(crate) fn test_long(lang: &str) -> Result<()> {
    run(command(lang, false, None)?.env("WEIR_CONFORMANCE_MESSAGES", many_messages(lang)))
}

fn command(lang: &str, record: bool, only: Option<&str>) -> Result<Command> {
    // The whole workspace is chosen, as for all its tests. Otherwise wasmtime would be built a second time.
    let mut test = cargo(["test", "--workspace", "--test", "conformance", "--"])?;
    test.args(only).env("WEIR_CONFORMANCE", lang);
    if record {
        test.env("WEIR_CONFORMANCE_RECORD", "1");
    }
    Ok(test)
}

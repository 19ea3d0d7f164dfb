//! The conformance suite for one language.

use anyhow::Result;

use crate::run::{cargo, run};

/// Builds the language's guest and tests it. With `record`, measures it and writes `docs/languages.md`.
pub(crate) fn test(lang: &str, record: bool, only: Option<&str>) -> Result<()> {
    // With the whole workspace, as for all its tests: else wasmtime is built a second time.
    let mut test = cargo(["test", "--workspace", "--test", "conformance", "--"])?;
    test.args(only).env("WEIR_CONFORMANCE", lang);
    if record {
        test.env("WEIR_CONFORMANCE_RECORD", "1");
    }
    run(&mut test)
}

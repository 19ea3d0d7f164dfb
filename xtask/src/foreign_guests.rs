//! The test guests in C and Go. A program of its own builds them: `xtask/foreign-guests`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{
    demo::weir,
    run::{cargo, output, run, target_dir},
};

/// The first release, as in `go1.21`, with `wasip1` and `//go:wasmimport`.
const OLDEST_GO: u32 = 21;

pub(crate) fn has_go() -> bool {
    let version = output(Command::new("go").args(["env", "GOVERSION"])).unwrap_or_default();
    let minor = version.trim().strip_prefix("go1.").and_then(|rest| rest.split(['.', 'r', 'b', '-']).next());
    minor.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor >= OLDEST_GO)
}

/// Builds a guest (`c-extension`, `c-hook`, `go-hook`) into `out_dir`. Returns the path of the component.
pub(crate) fn build(guest: &str, out_dir: &Path) -> Result<PathBuf> {
    run(cargo(weir::AS_TESTED)?.args(["--bin", "foreign-guests"]))?;
    let mut program = Command::new(target_dir()?.join("debug/foreign-guests"));
    Ok(PathBuf::from(output(program.arg(guest).arg(out_dir))?.trim_end()))
}

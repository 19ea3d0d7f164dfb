//! A new project of each language that exports functions, and its tests.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use super::{go_runtime, with_bindgen};
use crate::run::run;

const LANGUAGES: [&str; 5] = ["rust", "python", "typescript", "go", "c"];

pub(super) fn check(weir: &Path) -> Result<()> {
    let (directory, path) = (tempfile::tempdir().context("cannot make a directory")?, with_bindgen()?);
    for language in LANGUAGES {
        let name = format!("plain-{language}");
        let mut new = Command::new(weir);
        run(new.args(["new", &name, "--kind", "plain", "--lang", language]).current_dir(&directory))?;
        let project = directory.path().join(name);
        if language == "go" {
            go_runtime(&project)?;
        }
        run(Command::new(weir).arg("test").current_dir(&project).env("PATH", &path))?;
        run(Command::new(weir).args(["check", "weir.toml"]).current_dir(&project))?;
    }
    Ok(())
}

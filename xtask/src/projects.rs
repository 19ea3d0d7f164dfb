//! A new project of a kind in each language, and its tests.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    run::{cargo_home, run},
    tools,
};

/// The runtime of Go's bindings is a module that `wit-bindgen-go` has, too.
const BINDGEN: &str = "0.61.1";

pub(crate) fn check(weir: &Path, kind: &str, languages: &[&str]) -> Result<()> {
    let (directory, path) = (tempfile::tempdir().context("cannot make a directory")?, with_bindgen()?);
    for language in languages {
        let name = format!("{kind}-{language}");
        let mut new = Command::new(weir);
        run(new.args(["new", &name, "--kind", kind, "--lang", language]).current_dir(&directory))?;
        let project = directory.path().join(name);
        if *language == "go" {
            go_runtime(&project)?;
        }
        run(Command::new(weir).arg("test").current_dir(&project).env("PATH", &path))?;
        run(Command::new(weir).args(["check", "weir.toml"]).current_dir(&project))?;
    }
    Ok(())
}

/// The command `wit-bindgen` of these languages.
pub(crate) fn bindgen() -> Result<PathBuf> {
    tools::of_crate("wit-bindgen-cli", "wit-bindgen", BINDGEN, Some("c,go"))
}

/// The directories of programs, with that of `wit-bindgen`.
pub(crate) fn with_bindgen() -> Result<OsString> {
    let (bindgen, others) = (bindgen()?, env::var_os("PATH").unwrap_or_default());
    let path = bindgen.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&others));
    Ok(env::join_paths(path)?)
}

/// Has a module of Go take the runtime of bindings from the crate that writes them: not every proxy has it.
pub(crate) fn go_runtime(project: &Path) -> Result<()> {
    let registry = cargo_home()?.join("registry/src");
    let of_crate = format!("wit-bindgen-go-{BINDGEN}/src/pkg");
    let mut sources = fs::read_dir(&registry).context("Cargo has no registry")?.flatten();
    let runtime = sources.find_map(|source| Some(source.path().join(&of_crate)).filter(|path| path.is_dir()));
    let runtime = runtime.with_context(|| format!("`{}` has no `{of_crate}`", registry.display()))?;
    let replace = format!("-replace=go.bytecodealliance.org/pkg={}", runtime.display());
    run(Command::new("go").args(["mod", "edit", &replace]).current_dir(project))
}

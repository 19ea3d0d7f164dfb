//! Tarballs that are the same whoever packs them, and sums.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::build::{Build, epoch};
use crate::run::{output, run};

/// Packs the tree into a folder of the build's name, and returns the tarball: sorted by name, owned by root, with the
/// commit's time, and with no time of packing.
pub(super) fn pack(tree: &Path, to: &Path, build: &Build) -> Result<PathBuf> {
    let name = build.name();
    let path = to.join(format!("{name}.tar.gz"));
    let folder = tree.file_name().context("the tree has no name")?.to_string_lossy();
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u=rwX,go=rX", &format!("--mtime=@{}", epoch()?)]);
    tar.arg(format!("--transform=s,^{folder},{name},")).args(["--use-compress-program", "gzip -9 --no-name"]);
    tar.arg("--file").arg(&path).arg("--directory").arg(to).arg(&*folder);
    run(&mut tar)?;
    Ok(path)
}

/// Writes the file's SHA-256 sum beside it, as `sha256sum --check` reads it.
pub(super) fn write_sum(file: &Path) -> Result<()> {
    let (directory, name) = file.parent().zip(file.file_name()).context("a file without a name")?;
    let sum = output(Command::new("sha256sum").arg(name).current_dir(directory))?;
    let path = PathBuf::from(format!("{}.sha256", file.display()));
    fs::write(&path, sum).with_context(|| format!("cannot write `{}`", path.display()))
}

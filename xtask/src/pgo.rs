//! Profile-guided optimisation: what is shipped and measured is compiled with a profile of what it does in benchmarks.
//!
//! The profile is made before a release and not checked in. Names of functions in it hold for one target, one version
//! of every crate and its features: what does not match is compiled as without a profile.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tempfile::NamedTempFile;

use crate::{
    bench, files, instructions,
    run::{cargo, output, root, run, target_dir},
};

/// The target of the profile.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The profile of Cargo that the names hold for.
const RELEASE: &str = "release";

/// Whether programs for this machine are compiled with the profile.
pub(crate) const IS_HERE: bool = cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"));

/// A build by Cargo of programs of `weir`, `weir-bench` and `weir-count` as they are shipped, and their directory. The
/// caller adds their names. Without a profile, it is a build without one, and a line says so.
pub(crate) fn build() -> Result<(Command, PathBuf)> {
    if IS_HERE && file()?.exists() {
        return build_with(flags(TARGET, RELEASE)?);
    }
    if IS_HERE {
        eprintln!("compiled without a profile: `cargo xtask pgo` makes one");
    }
    build_plainly()
}

/// A build like that of [`build`], but without the profile.
pub(crate) fn build_plainly() -> Result<(Command, PathBuf)> {
    // With all of them, the crates below the gateway have the features that `weir` alone gives them.
    let packages = ["weir-cli", "weir-bench", "weir-count"].map(|package| ["--package", package]);
    let mut build = cargo(["build", "--release"])?;
    build.args(packages.as_flattened());
    Ok((build, target_dir()?.join(RELEASE)))
}

/// A build like that of [`build`], but the programs count what they do. When they end, they write that to where
/// `LLVM_PROFILE_FILE` says.
pub(crate) fn build_counting() -> Result<(Command, PathBuf)> {
    build_with(vec!["-Cprofile-generate".to_owned()])
}

fn build_with(flags: Vec<String>) -> Result<(Command, PathBuf)> {
    let (mut build, _) = build_plainly()?;
    add_flags(build.args(["--target", TARGET]), TARGET, &flags)?;
    Ok((build, target_dir()?.join(TARGET).join(RELEASE)))
}

/// Where the profile that was made last lies.
fn file() -> Result<PathBuf> {
    Ok(target_dir()?.join("pgo").join(TARGET).with_extension("profdata"))
}

/// The profile that was made last. Fails if there is none.
pub(crate) fn made() -> Result<PathBuf> {
    let file = file()?;
    ensure!(file.exists(), "there is no `{}`: make it by `cargo xtask pgo`", file.display());
    Ok(file)
}

/// Flags of the compiler that bring the profile. There are none unless a target and a profile of Cargo are those that
/// it is for. Fails if they are and no profile was made.
pub(crate) fn flags(target: &str, profile: &str) -> Result<Vec<String>> {
    if (target, profile) != (TARGET, RELEASE) {
        return Ok(Vec::new());
    }
    let file = made()?;
    let sum = output(Command::new("sha256sum").arg(&file))?;
    let sum = sum.split_whitespace().next().context("`sha256sum` printed no sum")?;
    // Cargo builds again only what has other flags, so another profile needs another name.
    let named = file.with_file_name(sum).with_extension("profdata");
    if !named.exists() {
        copy(&file, &named)?;
    }
    Ok(vec![format!("-Cprofile-use={}", named.display())])
}

/// Adds flags of the compiler for a target to those of all configurations.
pub(crate) fn add_flags(build: &mut Command, target: &str, flags: &[String]) -> Result<()> {
    build.args(["--config", &format!("target.{target}.rustflags={}", serde_json::to_string(flags)?)]);
    // The variables would replace the flags of all configurations.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    Ok(())
}

/// Makes the profile anew: by a quick run of all benchmarks, and by the paths whose instructions are counted.
pub(crate) fn make() -> Result<()> {
    ensure!(IS_HERE, "the profile is for `{TARGET}`: make it there");
    let merge = profdata()?;
    let counted = tempfile::tempdir().context("cannot make a directory")?;
    // The processes of a program share up to four files.
    let files = counted.path().join("%4m.profraw");
    bench::train(&files)?;
    instructions::train(&files)?;
    let merged = counted.path().join("merged");
    run(Command::new(merge).args(["merge", "--sparse", "--output"]).arg(&merged).arg(counted.path()))?;
    copy(&merged, &file()?)
}

/// The program that merges what programs counted, of the compiler's own version of LLVM.
fn profdata() -> Result<PathBuf> {
    // The workspace's toolchain file decides the toolchain.
    run(Command::new("rustup").args(["component", "add", "llvm-tools"]).current_dir(root()?))?;
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()?))?;
    Ok(Path::new(sysroot.trim_end()).join("lib/rustlib").join(TARGET).join("bin/llvm-profdata"))
}

/// Copies a file so that it is there whole or not at all.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let dir = to.parent().context("a file lies in no directory")?;
    files::make_directory(dir)?;
    let part = NamedTempFile::new_in(dir)?;
    fs::copy(from, part.path()).with_context(|| format!("cannot read `{}`", from.display()))?;
    part.persist(to).with_context(|| format!("cannot write `{}`", to.display()))?;
    Ok(())
}

//! What is given away: tarballs that are the same whoever packs them, Debian packages, and sums. cargo-deb makes the
//! packages: their metadata is in `cli/Cargo.toml`, their scripts are in `packaging/debian`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{
    VERSION,
    build::{Build, EPOCH_VARIABLE, build_dir, epoch},
};
use crate::{
    files,
    run::{output, root, run},
    tools,
};

const CARGO_DEB: (&str, &str) = ("cargo-deb", "3.8.0");

/// The newest version of the C library that a program may need: that of Debian 12, which `depends` in the metadata
/// names.
const GLIBC: (u32, u32) = (2, 36);

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

/// Packs the tree, and returns the Debian package.
pub(super) fn pack_deb(tree: &Path, to: &Path, build: &Build) -> Result<PathBuf> {
    let (name, version) = CARGO_DEB;
    let program = tools::of_cargo(name, version)?;
    for (_, program) in build.programs() {
        assert_glibc(&tree.join("bin").join(program))?;
    }
    let architecture = build.target.debian.context("no architecture of Debian")?;
    let path = to.join(format!("{}_{VERSION}-1_{architecture}.deb", build.package()));
    let mut deb = Command::new(program);
    deb.args([
        "--package",
        "weir-cli",
        "--locked",
        "--no-build",
        "--no-strip",
        "--target",
        build.target.triple,
    ]);
    if build.is_for_devices {
        deb.args(["--variant", "device"]);
    }
    deb.arg("--output").arg(&path).current_dir(root()?);
    run(deb.env("CARGO_TARGET_DIR", build_dir()?).env(EPOCH_VARIABLE, epoch()?))?;
    Ok(path)
}

/// Fails if a program needs a newer C library than [`GLIBC`]. It needs the newest version that one of its symbols has.
fn assert_glibc(program: &Path) -> Result<()> {
    let symbols = output(Command::new("readelf").args(["--version-info", "--wide"]).arg(program))?;
    let newest = symbols.split("GLIBC_").skip(1).filter_map(version).max();
    let name = program.display();
    let newest = newest.with_context(|| format!("`{name}` uses no C library"))?;
    ensure!(newest <= GLIBC, "`{name}` needs glibc {newest:?}, and the package promises {GLIBC:?}");
    Ok(())
}

/// The version at the beginning of a text, as in `2.34  Flags: none`.
fn version(text: &str) -> Option<(u32, u32)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let mut numbers = text.get(..end)?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Writes the file's SHA-256 sum beside it, as `sha256sum --check` reads it.
pub(super) fn write_sum(file: &Path) -> Result<()> {
    let (directory, name) = file.parent().zip(file.file_name()).context("a file without a name")?;
    let sum = output(Command::new("sha256sum").arg(name).current_dir(directory))?;
    let path = PathBuf::from(format!("{}.sha256", file.display()));
    files::write(&path, sum)
}

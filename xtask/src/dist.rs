//! What is given to others: `weir` for a target in a tarball and a Debian package, each with its SHA-256 sum, and an
//! SBOM.
//!
//! Two builds of one commit, with one profile, are to be the same, in whatever directory: see `build.rs`. `check.rs`
//! compares two.

mod archive;
mod build;
mod check;
mod packages;
mod sbom;
mod sizes;
mod stage;
mod target;

use std::path::PathBuf;

use anyhow::{Result, ensure};

pub(crate) use self::target::{TARGETS, Target};
use self::{
    build::{Build, EPOCH_VARIABLE, epoch},
    packages::Packages,
};
use crate::{files, run::target_dir};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The machine that it is for.
    #[arg(long, value_name = "TRIPLE", value_parser = TARGETS.map(|target| target.triple))]
    #[arg(required_unless_present = "check")]
    target: Option<String>,
    /// The smallest: no compiler, no gateway, no stores, no HTTP, no OpenTelemetry, no tools of authors; built for size.
    #[arg(long)]
    device: bool,
    /// Also make a Debian package.
    #[arg(long)]
    deb: bool,
    /// Also make an SBOM: a CycloneDX document in JSON.
    #[arg(long)]
    sbom: bool,
    /// Build `weir` for x86-64 without the profile that `cargo xtask pgo` makes.
    #[arg(long)]
    without_profile: bool,
    /// Instead, build for size with one feature after the other, and print what each adds.
    #[arg(long, conflicts_with_all = ["device", "deb", "sbom"])]
    sizes: bool,
    /// Instead, install the package in a clean Debian, use and remove it; for x86-64, compare two builds, too.
    #[arg(long, conflicts_with_all = ["deb", "sbom", "sizes"])]
    check: bool,
}

pub(crate) fn dist(arguments: &Arguments) -> Result<()> {
    let target = Target::named(arguments.target.as_deref().unwrap_or(check::GNU))?;
    if arguments.sizes {
        return sizes::print(target);
    }
    let build =
        Build { target, is_for_devices: arguments.device, without_profile: arguments.without_profile };
    ensure!(
        !(arguments.deb || arguments.check) || target.debian.is_some(),
        "`{}` is not an architecture of Debian: its tarball runs there, too",
        target.triple
    );
    if arguments.check {
        return check::check(build);
    }
    for file in make(build, arguments.deb, arguments.sbom)? {
        println!("{}", file.display());
    }
    Ok(())
}

/// Builds for a target, and returns the tarball, and the Debian package and the SBOM if they are wanted. Writes the sum
/// of each file beside it.
fn make(build: Build, deb: bool, sbom: bool) -> Result<Vec<PathBuf>> {
    build.target.prepare()?;
    let to = target_dir()?.join("dist");
    files::make_directory(&to)?;
    let packages = Packages::of(&build)?;
    let staged = stage::fill(&build, &packages, &to)?;
    let mut made = vec![archive::pack(&staged, &to, &build)?];
    if deb {
        made.push(archive::pack_deb(&staged, &to, &build)?);
    }
    if sbom {
        made.push(sbom::write(&packages, &to, &build)?);
    }
    for file in &made {
        archive::write_sum(file)?;
    }
    Ok(made)
}

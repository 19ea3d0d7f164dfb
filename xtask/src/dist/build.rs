//! Builds of `weir`, of `weir-registry` and of extensions that are to be the same wherever they are made.
//!
//! What would differ is left out: paths of the checkout and of Cargo's sources are replaced by fixed ones, and times
//! are the commit's. What is compiled with a profile of its work is the same only with the same profile.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{VERSION, target::Target};
use crate::{
    guests, pgo,
    run::{cargo, cargo_home, output, root, run, target_dir},
};

/// Names the time of everything that is made, in seconds since 1970: see <https://reproducible-builds.org>. By default,
/// the commit's.
pub(crate) const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// All features but those that need a compiler.
const WITHOUT_COMPILER: &str = "gateway,gateway-tls,http,otlp,packages,store,tools";

/// A package of Cargo, and its program.
pub(super) type Program = (&'static str, &'static str);

pub(super) const WEIR: Program = ("weir-cli", "weir");

/// The program that `weir` starts for registries.
const REGISTRY: Program = ("weir-registry", "weir-registry");

/// One way to build `weir`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Build {
    pub(crate) target: &'static Target,
    pub(crate) is_for_devices: bool,
    pub(crate) without_profile: bool,
}

impl Build {
    /// The name of the Debian package, with which the names of all files begin.
    pub(super) fn package(&self) -> &'static str {
        if self.is_for_devices { "weir-device" } else { "weir" }
    }

    /// The name of the files that are made, without their endings.
    pub(super) fn name(&self) -> String {
        format!("{}-{VERSION}-{}", self.package(), self.target.triple)
    }

    /// Whether this `weir` has the compiler.
    pub(super) fn compiles(&self) -> bool {
        self.target.compiles && !self.is_for_devices
    }

    /// Whether this `weir` has a feature.
    pub(super) fn has(&self, feature: &str) -> bool {
        if feature == "compiler" { self.compiles() } else { !self.is_for_devices }
    }

    fn profile(&self) -> &'static str {
        if self.compiles() { "release" } else { "device" }
    }

    /// Arguments of Cargo that choose the features.
    pub(super) fn features(&self) -> Vec<&'static str> {
        match (self.is_for_devices, self.compiles()) {
            (true, _) => vec!["--no-default-features"],
            (false, true) => Vec::new(),
            (false, false) => vec!["--no-default-features", "--features", WITHOUT_COMPILER],
        }
    }

    /// What is built.
    pub(super) fn programs(&self) -> &'static [Program] {
        if self.has("packages") { &[WEIR, REGISTRY] } else { &[WEIR] }
    }

    /// Builds [all](Self::programs).
    pub(super) fn run(&self) -> Result<Vec<PathBuf>> {
        let by_profile = if self.without_profile {
            Vec::new()
        } else {
            pgo::flags(self.target.triple, self.profile())
                .context("cannot compile with a profile; `--without-profile` does without")?
        };
        programs(self.target, self.profile(), &self.features(), by_profile, self.programs())
    }
}

/// Builds programs in a profile of Cargo, with these arguments for features, and more flags of the compiler. Symbols are
/// stripped: a trace of an extension does not need them.
pub(super) fn programs(
    target: &Target,
    profile: &str,
    features: &[&str],
    more_flags: Vec<String>,
    programs: &[Program],
) -> Result<Vec<PathBuf>> {
    // These are flags and not settings of Cargo, which would give functions other names than the profile has.
    let mut flags = ["-Cstrip=symbols", "-Cdebuginfo=0"].map(str::to_owned).to_vec();
    flags.extend(more_flags);
    let mut build = same_everywhere(target.triple, flags)?;
    for (package, program) in programs {
        build.args(["--package", package, "--bin", program]);
    }
    build.args(["--profile", profile]).args(features);
    target.choose(&mut build);
    let remaps = remaps()?.map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    build.env(format!("CFLAGS_{}", target.underscored()), remaps.join(" "));
    run(&mut build)?;
    let built = build_dir()?.join(target.triple).join(profile);
    Ok(programs.iter().map(|(_, program)| built.join(program)).collect())
}

/// Builds an extension of `plugins/`.
pub(super) fn extension(name: &str) -> Result<PathBuf> {
    guests::add_target()?;
    let mut build = same_everywhere(guests::TARGET, Vec::new())?;
    run(build.args(["--target", guests::TARGET, "--package", name, "--bin", name, "--profile", "guest"]))?;
    Ok(build_dir()?.join(guests::TARGET).join("guest").join(format!("{name}.wasm")))
}

/// The time of everything that is made, in seconds since 1970.
pub(crate) fn epoch() -> Result<String> {
    if let Ok(epoch) = env::var(EPOCH_VARIABLE) {
        return Ok(epoch);
    }
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()?));
    let time = time.with_context(|| format!("there is no commit here: set `{EPOCH_VARIABLE}`"))?;
    Ok(time.trim_end().to_owned())
}

/// The target directory of these builds. It is their own, since their flags would have all else built again.
pub(super) fn build_dir() -> Result<PathBuf> {
    Ok(target_dir()?.join("dist/build"))
}

/// A build by Cargo that gives the same wherever the checkout and Cargo's sources lie.
fn same_everywhere(triple: &str, mut flags: Vec<String>) -> Result<Command> {
    flags.extend(remaps()?.map(|(from, to)| format!("--remap-path-prefix={from}={to}")));
    let mut build = cargo(["build", "--locked"])?;
    pgo::add_flags(&mut build, triple, &flags)?;
    build.env("CARGO_TARGET_DIR", build_dir()?).env(EPOCH_VARIABLE, epoch()?);
    Ok(build)
}

/// Directories of this machine, and what stands for them in programs.
fn remaps() -> Result<[(String, &'static str); 2]> {
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is no text");
    Ok([(text(root()?)?, "/weir"), (text(&cargo_home()?)?, "/cargo")])
}

//! The targets, and what building for them needs.

use anyhow::{Context, Result, ensure};

use crate::{
    guests,
    setup::{self, AARCH64, ARMV7, MUSL, Need},
};

/// A machine that `weir` is built for.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) triple: &'static str,
    /// Whether `weir` can compile components there. Where it cannot, it runs artifacts that were compiled elsewhere.
    pub(crate) compiles: bool,
    /// What links; `None`: as Rust does by itself.
    pub(crate) linker: Option<&'static str>,
    /// For the C and assembly of `ring`.
    pub(crate) c_compiler: &'static str,
    /// The architecture of a Debian package.
    pub(crate) debian: Option<&'static str>,
    need: Option<&'static Need>,
}

const AARCH64_GCC: &str = "aarch64-linux-gnu-gcc";
const ARMHF_GCC: &str = "arm-linux-gnueabihf-gcc";

pub(super) const TARGETS: [Target; 5] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        compiles: true,
        linker: None,
        c_compiler: "cc",
        debian: Some("amd64"),
        need: None,
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        compiles: true,
        linker: None,
        c_compiler: "musl-gcc",
        debian: None,
        need: Some(&MUSL),
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        compiles: true,
        linker: Some(AARCH64_GCC),
        c_compiler: AARCH64_GCC,
        debian: Some("arm64"),
        need: Some(&AARCH64),
    },
    // Rust brings musl. `ring` takes nothing of the C library but constants, so the headers of another one suffice.
    Target {
        triple: "aarch64-unknown-linux-musl",
        compiles: true,
        linker: Some(AARCH64_GCC),
        c_compiler: AARCH64_GCC,
        debian: None,
        need: Some(&AARCH64),
    },
    Target {
        triple: "armv7-unknown-linux-gnueabihf",
        compiles: false,
        linker: Some(ARMHF_GCC),
        c_compiler: ARMHF_GCC,
        debian: Some("armhf"),
        need: Some(&ARMV7),
    },
];

impl Target {
    pub(super) fn named(triple: &str) -> Result<&'static Self> {
        TARGETS.iter().find(|target| target.triple == triple).context("no such target")
    }

    /// Installs what building needs, if it may.
    pub(super) fn prepare(&self) -> Result<()> {
        guests::add_target_of(self.triple)?;
        let missing = setup::install(self.need.as_slice())?;
        ensure!(missing.is_empty(), "first run `{}`", setup::line(&missing));
        Ok(())
    }
}

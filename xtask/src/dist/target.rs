//! The targets, and what building for them needs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    guests,
    run::{output, target_dir},
    setup::{self, AARCH64, ARMV7, MUSL, Need},
};

/// A machine that `weir` is built for.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) triple: &'static str,
    /// Whether `weir` can compile components there. Where it cannot, it runs artifacts that were compiled elsewhere.
    pub(crate) compiles: bool,
    /// The linker. `None` where Rust's own choice is right.
    linker: Option<&'static str>,
    /// The compiler for the C and the assembly of `ring`.
    c_compiler: &'static str,
    /// The architecture of a Debian package. `None` where Debian has another C library.
    pub(crate) debian: Option<&'static str>,
    needs: &'static [&'static Need],
    /// The command that runs the target's programs on this machine. `None` if the machine itself runs them.
    pub(crate) emulator: Option<&'static str>,
}

const AARCH64_GCC: &str = "aarch64-linux-gnu-gcc";
const ARMHF_GCC: &str = "arm-linux-gnueabihf-gcc";

pub(crate) const TARGETS: [Target; 5] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        compiles: true,
        linker: None,
        c_compiler: "cc",
        debian: Some("amd64"),
        needs: &[],
        emulator: None,
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        compiles: true,
        linker: None,
        c_compiler: "musl-gcc",
        debian: None,
        needs: &[&MUSL],
        emulator: None,
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        compiles: true,
        linker: Some(AARCH64_GCC),
        c_compiler: AARCH64_GCC,
        debian: Some("arm64"),
        needs: &[&AARCH64],
        emulator: Some("qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    },
    // Rust brings musl, and Debian's package is there for its licence. `ring` takes only constants from headers of the
    // C library, so those of another C library suffice.
    Target {
        triple: "aarch64-unknown-linux-musl",
        compiles: true,
        linker: Some(AARCH64_GCC),
        c_compiler: AARCH64_GCC,
        debian: None,
        needs: &[&AARCH64, &MUSL],
        emulator: Some("qemu-aarch64"),
    },
    Target {
        triple: "armv7-unknown-linux-gnueabihf",
        compiles: false,
        linker: Some(ARMHF_GCC),
        c_compiler: ARMHF_GCC,
        debian: Some("armhf"),
        needs: &[&ARMV7],
        emulator: Some("qemu-arm -L /usr/arm-linux-gnueabihf"),
    },
];

impl Target {
    pub(crate) fn named(triple: &str) -> Result<&'static Self> {
        TARGETS.iter().find(|target| target.triple == triple).context("no such target")
    }

    /// Installs what building for this target needs, or fails and says how to.
    pub(crate) fn prepare(&self) -> Result<()> {
        guests::add_target_of(self.triple)?;
        setup::require(self.needs)?;
        Ok(())
    }

    /// Where programs for other processors are built to be tested. It can be removed by itself if disk space is short.
    pub(crate) fn directory() -> Result<PathBuf> {
        Ok(target_dir()?.join("devices"))
    }

    /// Makes a build by Cargo one for this target.
    pub(crate) fn choose(&self, build: &mut Command) {
        build.args(["--target", self.triple]);
        if let Some(linker) = self.linker {
            build.args(["--config", &format!("target.{}.linker='{linker}'", self.triple)]);
        }
        build.env(format!("CC_{}", self.underscored()), self.c_compiler);
    }

    /// Files with licences of what Rust links beside crates, and their names.
    pub(super) fn licences(&self) -> Result<Vec<(PathBuf, &'static str)>> {
        let rust = output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let standard = Path::new(rust.trim_end()).join("share/doc/rust/COPYRIGHT-library.html");
        let mut files = vec![(standard, "RUST-STANDARD-LIBRARY-LICENSES.html")];
        if self.triple.ends_with("-musl") {
            files.push((PathBuf::from("/usr/share/doc/musl/copyright"), "MUSL-LICENSES.txt"));
        }
        Ok(files)
    }

    /// The triple, as names of variables have it.
    pub(super) fn underscored(&self) -> String {
        self.triple.replace('-', "_")
    }
}

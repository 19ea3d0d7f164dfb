//! The device suite on processors of devices, emulated by qemu: Main without the compiler, and artifacts that are
//! compiled and signed here.

use std::{path::PathBuf, process::Command};

use anyhow::{Result, ensure};

use crate::{
    run::{cargo, run, target_dir},
    setup::{self, Need},
};

/// A processor, and what builds and runs programs for it here.
struct Processor {
    target: &'static str,
    /// What links, and compiles C.
    gcc: &'static str,
    runner: &'static str,
    need: &'static Need,
}

const ARMV7: Processor = Processor {
    target: "armv7-unknown-linux-gnueabihf",
    gcc: "arm-linux-gnueabihf-gcc",
    runner: "qemu-arm -L /usr/arm-linux-gnueabihf",
    need: &setup::ARMV7,
};

const AARCH64: Processor = Processor {
    target: "aarch64-unknown-linux-gnu",
    gcc: "aarch64-linux-gnu-gcc",
    runner: "qemu-aarch64 -L /usr/aarch64-linux-gnu",
    need: &setup::AARCH64,
};

/// What no test looks at, and why.
const SKIPPED: [&str; 3] = [
    "compiling: the device has no compiler",
    "the gateway, HTTP, stores and OTLP: this `weir` is built without them",
    "times and memory: an emulator's are not the device's",
];

/// 32-bit ARM, where Pulley interprets.
pub(crate) fn armv7() -> Result<Vec<String>> {
    let weir = ARMV7.build()?;
    ARMV7.suite(&weir, None)?;
    Ok(SKIPPED.map(ToOwned::to_owned).to_vec())
}

/// 64-bit ARM, with each class of address space.
pub(crate) fn aarch64() -> Result<Vec<String>> {
    let weir = AARCH64.build()?;
    for space in ["large", "small"] {
        AARCH64.suite(&weir, Some(space))?;
    }
    Ok(SKIPPED.map(ToOwned::to_owned).to_vec())
}

impl Processor {
    /// Builds `weir` as devices have it.
    fn build(&self) -> Result<PathBuf> {
        let missing = setup::install(&[self.need])?;
        ensure!(missing.is_empty(), "first run `{}`", setup::line(&missing));
        run(Command::new("rustup").args(["target", "add", self.target]))?;
        let variable = self.target.replace('-', "_");
        // Removed alone, if room is short: nothing else is built there.
        let directory = target_dir()?.join("devices");
        let mut build =
            cargo(["build", "--package", "weir", "--no-default-features", "--target", self.target])?;
        build.env("CARGO_TARGET_DIR", &directory);
        build.env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), self.gcc);
        run(build.env(format!("CC_{variable}"), self.gcc))?;
        Ok(directory.join(self.target).join("debug/weir"))
    }

    /// Runs the suite of `cli/tests/device` on that `weir`.
    fn suite(&self, weir: &PathBuf, address_space: Option<&str>) -> Result<()> {
        // In the selection of features of all tests, so that wasmtime is built once.
        let mut suite = cargo(["test", "--workspace", "--test", "device"])?;
        suite.env("WEIR_DEVICE_BIN", weir).env("WEIR_DEVICE_RUNNER", self.runner);
        suite.env("WEIR_DEVICE_TARGET", self.target);
        if let Some(space) = address_space {
            suite.env("WEIR_DEVICE_ADDRESS_SPACE", space);
        }
        run(&mut suite)
    }
}

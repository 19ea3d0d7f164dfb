//! The device suite on processors of devices, emulated by qemu: Main without the compiler, and artifacts that are
//! compiled and signed here.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{
    dist::Target,
    run::{cargo, run},
};

/// What no test looks at, and why.
const SKIPPED: [&str; 3] = [
    "compiling: the device has no compiler",
    "the gateway, HTTP, stores and OTLP: this `weir` is built without them",
    "times and memory: an emulator's are not the device's",
];

/// 32-bit ARM, where Pulley interprets.
pub(crate) fn armv7() -> Result<Vec<String>> {
    let target = Target::named("armv7-unknown-linux-gnueabihf")?;
    suite(target, &build(target)?, None)
}

/// 64-bit ARM, with each class of address space.
pub(crate) fn aarch64() -> Result<Vec<String>> {
    let target = Target::named("aarch64-unknown-linux-gnu")?;
    let weir = build(target)?;
    suite(target, &weir, Some("large"))?;
    suite(target, &weir, Some("small"))
}

/// Builds `weir` as devices have it.
fn build(target: &Target) -> Result<PathBuf> {
    target.prepare()?;
    let directory = Target::directory()?;
    let mut build = cargo(["build", "--package", "weir", "--no-default-features"])?;
    target.choose(&mut build);
    run(build.env("CARGO_TARGET_DIR", &directory))?;
    Ok(directory.join(target.triple).join("debug/weir"))
}

/// Runs the suite of `cli/tests/device` on that `weir`. Returns what it skips.
fn suite(target: &Target, weir: &Path, address_space: Option<&str>) -> Result<Vec<String>> {
    // In the selection of features of all tests, so that wasmtime is built once.
    let mut suite = cargo(["test", "--workspace", "--test", "device"])?;
    suite.env("WEIR_DEVICE_BIN", weir).env("WEIR_DEVICE_TARGET", target.triple);
    suite.env("WEIR_DEVICE_RUNNER", target.emulator.unwrap_or_default());
    if let Some(space) = address_space {
        suite.env("WEIR_DEVICE_ADDRESS_SPACE", space);
    }
    run(&mut suite)?;
    Ok(SKIPPED.map(ToOwned::to_owned).to_vec())
}

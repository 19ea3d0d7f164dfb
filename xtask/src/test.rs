//! What CI runs, step by step.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::{
    bench, demo, deny, first_extension, foreign_guests, guests, hooks, instructions,
    run::{cargo, run, target_dir},
    spec_tests,
};

/// Packages that are built for `wasm32-wasip2`, too.
const GUEST_PACKAGES: [&str; 10] = [
    "weir-sdk",
    "device-info",
    "storage",
    "settings",
    "telemetry",
    "echo",
    "example-hooks",
    "test-guests",
    "bench-guests",
    "kernels",
];

type Step = (&'static str, fn() -> Result<()>);

const STEPS: [Step; 15] = [
    ("format", || cargo_run(&["fmt", "--all", "--check"])),
    ("plugins", || guests::plugins().map(drop)),
    ("lint", || cargo_run(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])),
    ("lint-guests", lint_guests),
    ("lint-no-compiler", || {
        cargo_run(&["clippy", "--package", "weir-host", "--no-default-features", "--", "--deny", "warnings"])
    }),
    ("docs", docs),
    ("deny", deny::check),
    ("unit-and-integration", unit_and_integration),
    ("spec-tests", spec_tests::check),
    ("extension-in-c", extension_in_c),
    ("hooks-in-c-and-go", hooks::check),
    ("first-extension", || first_extension::check()),
    ("demo", demo::check),
    ("benches", bench::check),
    ("instructions", || instructions::instructions(false)),
];

/// Runs the steps whose name contains `only`, in order, to the first that fails.
pub(crate) fn test(only: Option<&str>) -> Result<()> {
    for (name, step) in STEPS.iter().filter(|(name, _)| only.is_none_or(|only| name.contains(only))) {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        step().with_context(|| format!("step `{name}` failed"))?;
        eprintln!("=== {name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn cargo_run(arguments: &[&str]) -> Result<()> {
    run(&mut cargo(arguments)?)
}

fn lint_guests() -> Result<()> {
    let mut clippy = cargo(["clippy", "--target", guests::TARGET, "--profile", "guest"])?;
    for package in GUEST_PACKAGES {
        clippy.args(["--package", package]);
    }
    run(clippy.args(["--", "--deny", "warnings"]))
}

fn docs() -> Result<()> {
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--document-private-items"])?;
    run(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn unit_and_integration() -> Result<()> {
    cargo_run(&["test", "--workspace", "--quiet"])
}

fn extension_in_c() -> Result<()> {
    let component = foreign_guests::build("c-extension", &target_dir()?.join("c-guest"))?;
    demo::check_c_guest(&component)
}

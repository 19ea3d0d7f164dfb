//! What CI runs, step by step.

mod programs;

use std::{env, time::Instant};

use anyhow::{Context, Result, ensure};

use crate::{
    conformance, demo, deny, files, first_extension, guests, hooks, instructions, release,
    run::{cargo, run, target_dir},
    setup::{self, C_FOR_WASM, Need, VALGRIND},
};

/// Packages that are also built for `wasm32-wasip2`.
const GUEST_PACKAGES: [&str; 12] = [
    "weir-sdk",
    "device-info",
    "storage",
    "settings",
    "telemetry",
    "echo",
    "courier",
    "example-hooks",
    "test-guests",
    "conformance-guest",
    "bench-guests",
    "kernels",
];

/// Packages of guests for tests and benchmarks, and of what builds them. Nobody reads their pages.
const GUESTS_WITHOUT_PAGES: [&str; 6] =
    ["test-guests", "keyvalue-guest", "conformance-guest", "bench-guests", "kernels", "foreign-guests"];

struct Step {
    name: &'static str,
    /// What the step needs. If the machine lacks it and it cannot be installed, the step is skipped.
    needs: Option<&'static Need>,
    /// Whether it runs beside the tests if all steps run: it waits for much, or has only one thread.
    is_beside_tests: bool,
    run: fn() -> Result<()>,
}

const TESTS: &str = "unit-and-integration";

const STEPS: [Step; 16] = [
    step("format", || cargo_run(&["fmt", "--all", "--check"])),
    step("plugins", || guests::plugins().map(drop)),
    step("lint", || cargo_run(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])),
    step("lint-guests", lint_guests),
    step("lint-no-compiler", || {
        // Without default features, the gateway has no TLS.
        let packages =
            ["weir-cli", "weir-host", "weir-gateway", "weir-capi"].map(|package| ["--package", package]);
        cargo_run(
            &[&["clippy", "--no-default-features"], packages.as_flattened(), &["--", "--deny", "warnings"]]
                .concat(),
        )
    }),
    // This `weir` has no gateway and sends no requests by HTTP. A test is chosen, too, so that libraries have the
    // features that they have in the workspace.
    step("lint-no-gateway", || {
        let features =
            ["--no-default-features", "--features", "compiler", "--bin", "weir", "--test", "command_line"];
        cargo_run(
            &[&["clippy", "--package", "weir-cli"], &features[..], &["--", "--deny", "warnings"]].concat(),
        )
    }),
    step("docs", docs),
    beside_tests("deny", None, deny::check),
    beside_tests("release", None, release::check_crates),
    step(TESTS, || programs::test(&[])),
    beside_tests("extension-in-c", Some(&C_FOR_WASM), extension_in_c),
    // The suite in Rust is among the tests of the workspace.
    beside_tests("conformance-in-c", Some(&C_FOR_WASM), || conformance::test("c", false, None)),
    beside_tests("hooks-in-c-and-go", Some(&C_FOR_WASM), hooks::check),
    beside_tests("first-extension", None, first_extension::check),
    beside_tests("demo", None, || demo::demo(true)),
    beside_tests("instructions", Some(&VALGRIND), instructions::check_as_tested),
];

const fn step(name: &'static str, run: fn() -> Result<()>) -> Step {
    Step { name, needs: None, is_beside_tests: false, run }
}

const fn beside_tests(name: &'static str, needs: Option<&'static Need>, run: fn() -> Result<()>) -> Step {
    Step { name, needs, is_beside_tests: true, run }
}

/// Runs the steps with `only` in their name, in order, until one fails. Without `only`, some run beside the tests. Steps
/// whose needs are missing are skipped, which is an error in CI.
pub(crate) fn test(only: Option<&str>) -> Result<()> {
    let steps: Vec<_> =
        STEPS.iter().filter(|step| only.is_none_or(|only| step.name.contains(only))).collect();
    let names = || STEPS.iter().map(|step| step.name).collect::<Vec<_>>().join(", ");
    ensure!(
        !steps.is_empty(),
        "no step has `{}` in its name: there are {}",
        only.unwrap_or_default(),
        names()
    );
    let mut needs: Vec<_> = steps.iter().filter_map(|step| step.needs).collect();
    needs.dedup();
    let missing = setup::install(&needs)?;
    let (skipped, steps): (Vec<&Step>, Vec<_>) =
        steps.into_iter().partition(|step| step.needs.is_some_and(|need| missing.contains(&need)));
    let is_beside = |step: &&&Step| only.is_none() && step.is_beside_tests;
    let beside: Vec<_> = steps.iter().filter(is_beside).map(|step| step.name).collect();
    for Step { name, run, .. } in steps.iter().filter(|step| !is_beside(step)) {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        let result = if *name == TESTS { programs::test(&beside) } else { run() };
        result.with_context(|| format!("step `{name}` failed"))?;
        eprintln!("=== {name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    if !skipped.is_empty() {
        let names: Vec<_> = skipped.iter().map(|step| format!("`{}`", step.name)).collect();
        let said = format!("{}: first run `{}`", names.join(", "), setup::line(&missing));
        // Nobody reads the output of a green CI run.
        ensure!(env::var_os("CI").is_none(), "skipped, which CI may not: {said}");
        eprintln!("\n=== skipped: {said}");
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
    // For each crate, rustdoc writes the index of all: what earlier runs left there would be written ninety times. And
    // nobody reads the pages of guests, half of all.
    files::clear(&target_dir()?.join("doc"))?;
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--document-private-items"])?;
    doc.args(GUESTS_WITHOUT_PAGES.iter().flat_map(|package| ["--exclude", package]));
    run(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn extension_in_c() -> Result<()> {
    guests::build_foreign("c-native-tests", &target_dir()?.join("c-native-tests"))?;
    let component = guests::build_foreign("c-extension", &target_dir()?.join("c-guest"))?;
    demo::check_c_guest(&component)
}

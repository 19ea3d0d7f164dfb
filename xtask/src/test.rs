//! What CI runs, step by step.

mod programs;

use std::{env, time::Instant};

use anyhow::{Context, Result, ensure};

use crate::{
    conformance, demo, deny, first_extension, guests, hooks, instructions,
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

struct Step {
    name: &'static str,
    /// What the step needs. If the machine lacks it and it cannot be installed, the step is skipped.
    needs: Option<&'static Need>,
    run: fn() -> Result<()>,
}

const STEPS: [Step; 15] = [
    step("format", || cargo_run(&["fmt", "--all", "--check"])),
    step("plugins", || guests::plugins().map(drop)),
    step("lint", || cargo_run(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])),
    step("lint-guests", lint_guests),
    step("lint-no-compiler", || {
        // Without default features, the gateway has no TLS.
        let packages =
            ["weir", "weir-host", "weir-gateway", "weir-capi"].map(|package| ["--package", package]);
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
        cargo_run(&[&["clippy", "--package", "weir"], &features[..], &["--", "--deny", "warnings"]].concat())
    }),
    step("docs", docs),
    step("deny", deny::check),
    step("unit-and-integration", programs::test),
    Step { needs: Some(&C_FOR_WASM), ..step("extension-in-c", extension_in_c) },
    // The suite in Rust is among the tests of the workspace.
    Step { needs: Some(&C_FOR_WASM), ..step("conformance-in-c", || conformance::test("c", false, None)) },
    Step { needs: Some(&C_FOR_WASM), ..step("hooks-in-c-and-go", hooks::check) },
    step("first-extension", first_extension::check),
    step("demo", || demo::demo(true)),
    Step { needs: Some(&VALGRIND), ..step("instructions", instructions::check_as_tested) },
];

const fn step(name: &'static str, run: fn() -> Result<()>) -> Step {
    Step { name, needs: None, run }
}

/// Runs the steps with `only` in their name, in order, until one fails. Steps whose needs are missing are skipped,
/// which is an error in CI.
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
    for Step { name, run, .. } in steps {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        run().with_context(|| format!("step `{name}` failed"))?;
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
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--document-private-items"])?;
    run(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn extension_in_c() -> Result<()> {
    guests::build_foreign("c-native-tests", &target_dir()?.join("c-native-tests"))?;
    let component = guests::build_foreign("c-extension", &target_dir()?.join("c-guest"))?;
    demo::check_c_guest(&component)
}

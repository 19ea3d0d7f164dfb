//! Groups of tests that take too long for every commit. Each runs on demand, and every night in
//! `.github/workflows/ci.yml`.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{
    bench, browser,
    demo::fleet::{self, Programs},
    dist::Target,
    full_contracts, full_embedders, full_exports, full_http, full_programs, full_prometheus, full_sdks,
    full_shipping, instructions, release,
    run::{cargo, output, run as run_command},
    setup::{self, VALGRIND},
    tools,
};

struct Group {
    name: &'static str,
    about: &'static str,
    /// Runs the tests, and returns what it skipped.
    run: fn() -> Result<Vec<String>>,
}

const GROUPS: [Group; 20] = [
    Group {
        name: "spec-tests",
        about: "the component model's test scripts, through the configuration of Weir's engines",
        run: spec_tests,
    },
    Group {
        name: "soak",
        about: "half an hour of calls, events, jobs, apps, peers, stores, hooks, faults, restarts and reloads, after which Main takes what it took before; and tests by millions of messages",
        run: soak,
    },
    Group {
        name: "benches",
        about: "every benchmark in its quick form: each runs and yields figures, and times are not judged",
        run: || bench::check().map(|()| Vec::new()),
    },
    Group {
        name: "instructions",
        about: "the instructions of a message's way, in a release build without the profile",
        run: instructions_of_release,
    },
    Group {
        name: "browser",
        about: "the client for pages and its types, and the example's app in a browser, with Main killed meanwhile",
        run: browser::check,
    },
    Group {
        name: "contracts",
        about: "generated clients in Rust, TypeScript and Python: read by their compilers, calling every extension, with Main killed meanwhile",
        run: full_contracts::check,
    },
    Group {
        name: "prometheus",
        about: "a real Prometheus that scrapes the demo's Main by `weir metrics`, answers queries and raises a packaged alert",
        run: full_prometheus::check,
    },
    Group {
        name: "http",
        about: "extensions and hooks that fetch from nginx over TLS; servers of others' making beside `wasmtime serve`; and new servers in Rust, Python, TypeScript and Go",
        run: full_http::check,
    },
    Group {
        name: "exports",
        about: "components that know nothing of Weir, made by the tools of Rust, Python, C, Go and JavaScript, that call each other; and new projects of each language",
        run: full_exports::check,
    },
    Group {
        name: "programs",
        about: "fifteen programs of crates.io and a server, unchanged, and programs in Kotlin and C++: each prints, writes and ends as under `wasmtime run`",
        run: full_programs::check,
    },
    Group {
        name: "store",
        about: "stores of a process that is killed a thousand times, and on a disk that runs full",
        run: store,
    },
    Group {
        name: "nats",
        about: "bridges beside a real NATS server: what crosses, the demo of a fleet, and Mains, bridges and servers that are killed and parted",
        run: nats,
    },
    Group {
        name: "embedders",
        about: "the pages for embedders, outside the clone: every block and example in Rust with default features; the C library, installed and moved, with many threads, under valgrind and sanitizers",
        run: full_embedders::check,
    },
    Group {
        name: "armv7",
        about: "a device with a 32-bit ARM, under qemu: artifacts for the interpreter, messages, hooks, traps, limits, reloads, Main killed",
        run: armv7,
    },
    Group {
        name: "aarch64",
        about: "the same with a 64-bit ARM, with large and with small address spaces",
        run: aarch64,
    },
    Group {
        name: "python",
        about: "the SDK for extensions in Python: its tests in memory, its types, and the conformance suite",
        run: full_sdks::python,
    },
    Group {
        name: "typescript",
        about: "the SDK for extensions in TypeScript: its types, its tests in memory, and the conformance suite",
        run: full_sdks::typescript,
    },
    Group {
        name: "go",
        about: "the SDK for extensions in Go: its tests in memory, and the conformance suite",
        run: full_sdks::go,
    },
    Group {
        name: "release",
        about: "what would be published: names, versions, every file, and new projects in each language that have nothing but the packages",
        run: release::full,
    },
    Group {
        name: "shipping",
        about: "packages from `weir new` to a device, through Debian's registry over TLS and by hand; skopeo and oras read what is written, and write what is read",
        run: full_shipping::check,
    },
];

fn soak() -> Result<Vec<String>> {
    let many = ["test", "--workspace", "--test", "killed_at_random", "--test", "many_subscribers"];
    run_command(cargo(many)?.env("WEIR_TEST_AMOUNT", "full"))?;
    let soak = ["test", "--workspace", "--test", "command_line", "--", "--ignored", "--nocapture", "soak"];
    run_command(&mut cargo(soak)?)?;
    Ok(Vec::new())
}

/// Runs a group.
pub(crate) fn run(name: &str) -> Result<()> {
    let group = GROUPS.iter().find(|group| group.name == name).with_context(|| {
        format!(
            "there is no group `{name}`: there are {}",
            GROUPS.map(|group| format!("`{}`", group.name)).join(", ")
        )
    })?;
    let start = Instant::now();
    let skipped = (group.run)().with_context(|| format!("group `{name}` failed"))?;
    eprintln!("=== {name}: passed in {} s", start.elapsed().as_secs());
    for skipped in skipped {
        eprintln!("=== {name}: skipped: {skipped}");
    }
    Ok(())
}

pub(crate) fn list() {
    for Group { name, about, .. } in &GROUPS {
        println!("{name}: {about}");
    }
}

/// Checks the crate of the component model's test scripts, a workspace of its own, and runs them.
fn spec_tests() -> Result<Vec<String>> {
    run_command(in_crate(&["fmt"])?.arg("--check"))?;
    run_command(in_crate(&["clippy", "--all-targets"])?.args(["--", "--deny", "warnings"]))?;
    run_command(in_crate(&["test", "--quiet"])?.args(["--", "--quiet"]))?;
    let scripts = output(in_crate(&["test", "--quiet"])?.args(["--", "--list"]))?;
    ensure!(
        scripts.lines().any(|line| line.ends_with(": test")),
        "there are no scripts: `WEIR_SPEC_TESTS` can name the folder `test` of a clone of \
         https://github.com/WebAssembly/component-model"
    );
    Ok(Vec::new())
}

fn instructions_of_release() -> Result<Vec<String>> {
    setup::require(&[&VALGRIND])?;
    instructions::instructions(&instructions::Arguments::default()).map(|()| Vec::new())
}

fn in_crate(arguments: &[&str]) -> Result<Command> {
    let mut cargo = cargo(arguments)?;
    cargo.args(["--manifest-path", "tests/spec-tests/Cargo.toml"]);
    Ok(cargo)
}

/// Runs the tests of `host/store/tests` that take long, or need a disk that only root can mount.
fn store() -> Result<Vec<String>> {
    run_command(test_of_store("kills", "--nocapture")?.env("WEIR_KILLS", "1000"))?;
    let disk = match SmallDisk::mount() {
        Ok(disk) => disk,
        Err(error) => return Ok(vec![format!("a full disk, which only root can mount: {error:#}")]),
    };
    run_command(test_of_store("small_disk", "--ignored")?.env("WEIR_SMALL_DISK", disk.0.path()))?;
    Ok(Vec::new())
}

fn test_of_store(name: &str, option: &str) -> Result<Command> {
    cargo(["test", "--workspace", "--test", name, "--", option])
}

/// A disk of 4 MiB in memory. Dropped, it is gone.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        run_command(Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "weir"]).arg(dir.path()))?;
        Ok(Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // If it fails, the directory stays, and the tests have been judged.
        let _unmounted = run_command(Command::new("umount").arg(self.0.path()));
    }
}

/// Bridges beside a real NATS server: their own tests, the demo of a fleet, and whole fleets that are killed and
/// parted.
fn nats() -> Result<Vec<String>> {
    let mut programs = Programs::build()?;
    let mut skipped = Vec::new();
    match tools::nats_command() {
        Ok(command) => programs.nats = Some(command),
        Err(error) => {
            eprintln!("going on without NATS's own command: {error:#}");
            skipped.push("`nats micro list`: Go cannot build the command".to_owned());
        }
    }
    fleet::show(&programs, true)?;
    let mut tests = cargo(["test", "--workspace", "--test", "fleet"])?;
    // Each test has the machine for itself, because some of them measure.
    tests.args(["--", "--include-ignored", "--nocapture", "--test-threads", "1"]);
    tests.env("WEIR_COMMAND", &programs.weir).env("WEIR_NATS_COMMAND", &programs.bridge);
    run_command(tests.env("WEIR_NATS_SERVER", &programs.server).env("WEIR_PLUGINS", &programs.plugins))?;
    Ok(skipped)
}

/// What no test of devices looks at, and why.
const SKIPPED: [&str; 3] = [
    "compiling: the device has no compiler",
    "the gateway, HTTP, stores and OTLP: this `weir` is built without them",
    "times and memory: an emulator's are not the device's",
];

/// The device suite on 32-bit ARM, emulated by qemu: Main without the compiler, and artifacts that are compiled and
/// signed here, which Pulley interprets.
fn armv7() -> Result<Vec<String>> {
    let target = Target::named("armv7-unknown-linux-gnueabihf")?;
    device_suite(target, &build_for(target)?, None)
}

/// The device suite on 64-bit ARM, emulated by qemu, with each class of address space.
fn aarch64() -> Result<Vec<String>> {
    let target = Target::named("aarch64-unknown-linux-gnu")?;
    let weir = build_for(target)?;
    device_suite(target, &weir, Some("large"))?;
    device_suite(target, &weir, Some("small"))
}

/// Builds `weir` with the features that it has on devices, in Cargo's profile for development.
fn build_for(target: &Target) -> Result<PathBuf> {
    target.prepare()?;
    let directory = Target::directory()?;
    let mut build = cargo(["build", "--package", "weir-cli", "--no-default-features"])?;
    target.choose(&mut build);
    run_command(build.env("CARGO_TARGET_DIR", &directory))?;
    Ok(directory.join(target.triple).join("debug/weir"))
}

/// Runs the suite of `cli/tests/device` on that `weir`. Returns what it skips.
fn device_suite(target: &Target, weir: &Path, address_space: Option<&str>) -> Result<Vec<String>> {
    // The whole workspace is chosen, as for all its tests, so that wasmtime is built once.
    let mut suite = cargo(["test", "--workspace", "--test", "device"])?;
    suite.env("WEIR_DEVICE_BIN", weir).env("WEIR_DEVICE_TARGET", target.triple);
    suite.env("WEIR_DEVICE_RUNNER", target.emulator.unwrap_or_default());
    if let Some(space) = address_space {
        suite.env("WEIR_DEVICE_ADDRESS_SPACE", space);
    }
    run_command(&mut suite)?;
    Ok(SKIPPED.map(ToOwned::to_owned).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_runs_every_night() {
        let workflow = include_str!("../../.github/workflows/ci.yml");
        let (_, list) = workflow.split_once("group: [").unwrap();
        let (list, _) = list.split_once(']').unwrap();
        let nightly: Vec<_> = list.split(',').map(str::trim).collect();
        assert_eq!(nightly, GROUPS.map(|group| group.name));
    }
}

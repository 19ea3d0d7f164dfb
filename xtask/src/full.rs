//! Groups of tests that take too long for every commit. Each runs on demand, and its pass is kept in
//! `docs/tested.md`.
//!
//! `cargo xtask test` does not run them. It fails if a group's inputs have changed since its kept pass.

mod inputs;
mod record;

use std::{fs, path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, bail, ensure};

use self::{
    inputs::Inputs,
    record::{Pass, Record},
};
use crate::{
    browser, full_capi, full_contracts, full_devices, full_http, full_nats, full_prometheus, full_sdks,
    full_store, nats,
    run::{cargo, output, root, run as run_command},
    spec_tests,
};

/// The kept passes, from the root of the workspace.
const RECORD: &str = "docs/tested.md";

struct Group {
    name: &'static str,
    about: &'static str,
    /// Files and folders, from the root of the workspace. A change voids the kept pass, so this lists only
    /// what this group alone tests.
    inputs: &'static [&'static str],
    /// Commands that print a tool's version in their first line.
    tools: &'static [&'static [&'static str]],
    /// Runs the tests, and returns what it skipped.
    run: fn() -> Result<Vec<String>>,
}

const RUSTC: &[&str] = &["rustc", "--version"];

const GROUPS: [Group; 14] = [
    Group {
        name: "spec-tests",
        about: "the component model's test scripts, through the configuration of Weir's engines",
        // The crate has its own lock file and wasmtime. It takes one file of Weir.
        inputs: &["spec-tests", spec_tests::CONFIGURATION],
        tools: &[RUSTC],
        run: || spec_tests::check().map(|()| Vec::new()),
    },
    Group {
        name: "soak",
        about: "half an hour of calls, events, jobs, apps, peers, stores, hooks, faults, restarts and reloads, after which Main takes what it took before",
        inputs: &[SOAK],
        tools: &[RUSTC],
        run: || {
            let soak =
                ["test", "--workspace", "--test", "command_line", "--", "--ignored", "--nocapture", "soak"];
            run_command(&mut cargo(soak)?).map(|()| Vec::new())
        },
    },
    Group {
        name: "browser",
        about: "the client for pages and its types, and the example's app in a browser, with Main killed meanwhile",
        inputs: &[browser::CLIENT, "examples/app", "xtask/src/browser", "xtask/src/browser.rs"],
        tools: &[RUSTC, &["node", "--version"], &["chromium", "--version"]],
        run: browser::check,
    },
    Group {
        name: "contracts",
        about: "generated clients in Rust, TypeScript and Python: read by their compilers, calling every extension, with Main killed meanwhile",
        inputs: &[
            "examples/peers/weir_peer.py",
            "examples/peers/weir_peer.pyi",
            "gateway/client/weir.d.ts",
            "generate",
            "xtask/src/full_contracts",
            "xtask/src/full_contracts.rs",
        ],
        tools: &[RUSTC, &["node", "--version"], &["python3", "--version"]],
        run: full_contracts::check,
    },
    Group {
        name: "prometheus",
        about: "a real Prometheus that scrapes the demo's Main by `weir metrics`, answers queries and raises a packaged alert",
        inputs: &["packaging/grafana", "packaging/prometheus", "xtask/src/full_prometheus.rs"],
        tools: &[RUSTC, &["prometheus", "--version"]],
        run: full_prometheus::check,
    },
    Group {
        name: "http",
        about: "extensions and hooks that fetch from nginx over TLS: a gigabyte, a hundred requests at once, and programs of others' making in Rust and Python",
        inputs: &["host/http/src", "xtask/src/full_http", "xtask/src/full_http.rs"],
        tools: &[RUSTC, &["sh", "-c", "nginx -v 2>&1"], &["python3", "--version"]],
        run: full_http::check,
    },
    Group {
        name: "store",
        about: "stores of a process that is killed a thousand times, and on a disk that runs full",
        inputs: &["host/store/src", "host/store/tests", "xtask/src/full_store.rs"],
        tools: &[RUSTC],
        run: full_store::check,
    },
    Group {
        name: "nats",
        about: "bridges beside a real NATS server: what crosses, the demo of a fleet, and Mains, bridges and servers that are killed and parted",
        inputs: &[
            "bridge-nats",
            "docs/fleet.md",
            "examples/fleet",
            "xtask/src/demo/fleet.rs",
            "xtask/src/full_nats.rs",
        ],
        tools: &[RUSTC, &[nats::SERVER, "--version"]],
        run: full_nats::check,
    },
    Group {
        name: "capi",
        about: "the C library, installed and moved: examples by pkg-config and CMake, with many threads and under valgrind",
        inputs: &["capi", "xtask/src/capi.rs", "xtask/src/full_capi.rs"],
        tools: &[RUSTC, &["cc", "--version"], &["cmake", "--version"], &["valgrind", "--version"]],
        run: full_capi::check,
    },
    Group {
        name: "armv7",
        about: "a device with a 32-bit ARM, under qemu: artifacts for the interpreter, messages, hooks, traps, limits, reloads, Main killed",
        inputs: DEVICE_SUITE,
        tools: &[RUSTC, &["arm-linux-gnueabihf-gcc", "--version"], &["qemu-arm", "--version"]],
        run: full_devices::armv7,
    },
    Group {
        name: "aarch64",
        about: "the same with a 64-bit ARM, with large and with small address spaces",
        inputs: DEVICE_SUITE,
        tools: &[RUSTC, &["aarch64-linux-gnu-gcc", "--version"], &["qemu-aarch64", "--version"]],
        run: full_devices::aarch64,
    },
    Group {
        name: "python",
        about: "the SDK for extensions in Python: its tests in memory, its types, and the conformance suite",
        inputs: &["guest-sdk/python", "conformance/python", "cli/templates/python/extension", SUITE, WIT],
        tools: &[&["python3", "--version"]],
        run: full_sdks::python,
    },
    Group {
        name: "typescript",
        about: "the SDK for extensions in TypeScript: its types, its tests in memory, and the conformance suite",
        inputs: &[
            "guest-sdk/typescript",
            "conformance/typescript",
            "cli/templates/typescript/extension",
            SUITE,
            WIT,
        ],
        tools: &[&["node", "--version"]],
        run: full_sdks::typescript,
    },
    Group {
        name: "go",
        about: "the SDK for extensions in Go: its tests in memory, and the conformance suite",
        inputs: &[
            "guest-sdk/go",
            "conformance/go",
            "cli/templates/go/extension",
            "cli/src/author/go.rs",
            SUITE,
        ],
        tools: &[&["go", "version"]],
        run: full_sdks::go,
    },
];

const DEVICE_SUITE: &[&str] = &[
    "cli/tests/device",
    "cli/tests/device.rs",
    "host/guest/src/calibration",
    "host/guest/src/calibration.rs",
    "host/guest/src/engine",
    "host/guest/src/engine.rs",
    "host/guest/src/program",
    "host/guest/src/program.rs",
    "xtask/src/dist/target.rs",
    "xtask/src/full_devices.rs",
];

const SUITE: &str = "conformance/tests";

const WIT: &str = "wit/iec.wit";

const SOAK: &str = "cli/tests/command_line/soak.rs";

/// Runs a group and keeps its pass.
pub(crate) fn run(name: &str) -> Result<()> {
    let group = GROUPS.iter().find(|group| group.name == name).with_context(|| {
        format!(
            "there is no group `{name}`: there are {}",
            GROUPS.map(|group| format!("`{}`", group.name)).join(", ")
        )
    })?;
    // Read before the run: changes during the run are not tested.
    let (inputs, commit) = (Inputs::of(root()?, group.inputs)?, commit()?);
    let start = Instant::now();
    let skipped = (group.run)().with_context(|| format!("group `{name}` failed"))?;
    let seconds = start.elapsed().as_secs();
    // The run may have installed them.
    let tools = group.tools.iter().map(|tool| version(tool)).collect::<Result<_>>()?;
    let pass = Pass { group: name.to_owned(), commit, inputs, tools, seconds, skipped };
    let mut record = read()?;
    record.put(pass);
    let path = root()?.join(RECORD);
    fs::write(&path, record.to_string()).with_context(|| format!("cannot write `{}`", path.display()))?;
    eprintln!("=== {name}: passed in {seconds} s; `{RECORD}` says so, which is to be committed");
    Ok(())
}

pub(crate) fn list() -> Result<()> {
    let record = read()?;
    for group in &GROUPS {
        println!("{}: {}", group.name, group.about);
        match holds(group, &record, root()?) {
            Ok(pass) => println!("    passed at {} in {} s", pass.commit, pass.seconds),
            Err(why) => println!("    {why}"),
        }
    }
    Ok(())
}

pub(crate) fn check() -> Result<()> {
    let record = read()?;
    let (mut void, root) = (Vec::new(), root()?);
    for group in &GROUPS {
        if let Err(why) = holds(group, &record, root) {
            void.push(why.to_string());
        }
    }
    ensure!(void.is_empty(), "{}", void.join("\n"));
    Ok(())
}

/// The kept pass of a group, unless its inputs have changed since.
fn holds<'r>(group: &Group, record: &'r Record, root: &Path) -> Result<&'r Pass> {
    let Group { name, inputs, .. } = group;
    let run = format!("run `cargo xtask test --full {name}` and commit `{RECORD}`");
    let Some(pass) = record.of(name) else { bail!("group `{name}` has no kept pass: {run}") };
    let changed = Inputs::of(root, inputs)?.changed_since(&pass.inputs);
    ensure!(changed.is_empty(), "group `{name}` has not passed since {} changed: {run}", changed.join(", "));
    Ok(pass)
}

fn read() -> Result<Record> {
    let path = root()?.join(RECORD);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    text.parse().with_context(|| format!("`{RECORD}` is not as `cargo xtask test --full` writes it"))
}

/// The commit that is checked out, and whether files differ from it.
fn commit() -> Result<String> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments).current_dir(root()?));
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--", ".", &format!(":!{RECORD}")])?;
    Ok(format!("{}{}", commit.trim_end(), if changes.is_empty() { "" } else { " with changes" }))
}

fn version(tool: &[&str]) -> Result<String> {
    let (program, arguments) = tool.split_first().context("a tool without a name")?;
    let printed = output(Command::new(program).args(arguments).current_dir(root()?))?;
    Ok(printed.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests;

//! Groups of tests that take too long for every commit. Each runs on demand, and every night in
//! `.github/workflows/ci.yml`.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::{
    bench, browser, full_capi, full_contracts, full_devices, full_http, full_nats, full_prometheus,
    full_sdks, full_store,
    run::{cargo, run as run_command},
    spec_tests,
};

struct Group {
    name: &'static str,
    about: &'static str,
    /// Runs the tests, and returns what it skipped.
    run: fn() -> Result<Vec<String>>,
}

const GROUPS: [Group; 15] = [
    Group {
        name: "spec-tests",
        about: "the component model's test scripts, through the configuration of Weir's engines",
        run: || spec_tests::check().map(|()| Vec::new()),
    },
    Group {
        name: "soak",
        about: "half an hour of calls, events, jobs, apps, peers, stores, hooks, faults, restarts and reloads, after which Main takes what it took before",
        run: || {
            let soak =
                ["test", "--workspace", "--test", "command_line", "--", "--ignored", "--nocapture", "soak"];
            run_command(&mut cargo(soak)?).map(|()| Vec::new())
        },
    },
    Group {
        name: "benches",
        about: "every benchmark in its quick form: each runs and yields figures, and times are not judged",
        run: || bench::check().map(|()| Vec::new()),
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
        about: "extensions and hooks that fetch from nginx over TLS: a gigabyte, a hundred requests at once, and programs of others' making in Rust and Python",
        run: full_http::check,
    },
    Group {
        name: "store",
        about: "stores of a process that is killed a thousand times, and on a disk that runs full",
        run: full_store::check,
    },
    Group {
        name: "nats",
        about: "bridges beside a real NATS server: what crosses, the demo of a fleet, and Mains, bridges and servers that are killed and parted",
        run: full_nats::check,
    },
    Group {
        name: "capi",
        about: "the C library, installed and moved: examples by pkg-config and CMake, with many threads and under valgrind",
        run: full_capi::check,
    },
    Group {
        name: "armv7",
        about: "a device with a 32-bit ARM, under qemu: artifacts for the interpreter, messages, hooks, traps, limits, reloads, Main killed",
        run: full_devices::armv7,
    },
    Group {
        name: "aarch64",
        about: "the same with a 64-bit ARM, with large and with small address spaces",
        run: full_devices::aarch64,
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
];

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

//! Every configurable limit is enforced: a guest trips it when small, and passes under the default class.

use std::{collections::BTreeSet, time::Duration};

use futures_util::FutureExt;
use tokio::task::yield_now;
use weir_host::{
    Main,
    component::Compilation,
    control::ExtensionState,
    limits::{ExtensionLimits, LimitsReport},
};

use super::support::{Gate, tell};

struct Case {
    /// The small limit of `key`, with what it needs beside.
    small: &'static str,
    key: &'static str,
    config: &'static str,
    act: Act,
    /// The outcomes under the small limit, and under the default class.
    trips: &'static str,
    passes: &'static str,
}

enum Act {
    Tell(&'static str),
    /// Tells it to wait, then sends this many commands without waiting.
    Queue(u32, &'static str),
    /// Returns the limit that loading hit.
    Load,
    Start,
    Stop,
    /// Returns whether its work was delayed.
    Work(&'static str),
    /// Returns whether any of its lines was dropped.
    Log(&'static str),
}

const CASES: [Case; 17] = [
    Case {
        key: "memory",
        small: "memory = \"4 MiB\"",
        config: "",
        act: Act::Tell("reserve 8000000"),
        trips: "refused",
        passes: "reserved",
    },
    Case {
        key: "stack",
        small: "stack = \"64 KiB\"",
        config: "",
        act: Act::Tell("nest 5000"),
        trips: "Trapped",
        passes: "5000",
    },
    Case {
        key: "fuel-per-message",
        small: "fuel-per-message = 2_000_000",
        config: "",
        act: Act::Tell("burn 2000000"),
        trips: "Trapped",
        passes: "0",
    },
    Case {
        key: "time-per-message",
        small: "time-per-message = \"1ms\"",
        config: "",
        act: Act::Tell("burn 20000000"),
        trips: "Trapped",
        passes: "0",
    },
    Case {
        key: "fuel-to-start",
        small: "fuel-to-start = 2_000_000",
        config: "start = \"burn 2000000\"",
        act: Act::Start,
        trips: "`fuel-to-start` of 2000000 used up",
        passes: "ready",
    },
    Case {
        key: "cpu-share",
        small: "cpu-share = \"1%\"",
        config: "",
        act: Act::Work("burn 20000000"),
        trips: "delayed",
        passes: "not delayed",
    },
    Case {
        key: "message-size",
        small: "message-size = \"1 KiB\"",
        config: "",
        act: Act::Tell("large 1025"),
        trips: "Error::TooLarge(Size { bytes: 1025, allowed: 1024 })",
        passes: "1025 bytes",
    },
    Case {
        key: "inbox.messages",
        small: "inbox.messages = 1",
        config: "",
        act: Act::Queue(2, "echo"),
        trips: "Overloaded(\"a\")",
        passes: "taken",
    },
    Case {
        key: "inbox.bytes",
        small: "inbox.bytes = \"1 KiB\", message-size = \"1 KiB\"",
        config: "",
        act: Act::Queue(8, "echo"),
        trips: "Overloaded(\"a\")",
        passes: "taken",
    },
    Case {
        key: "in-flight",
        small: "in-flight = 1",
        config: "",
        act: Act::Tell("all send gate@1 pass 1; send gate@1 pass 2"),
        trips: "Error::LimitExceeded(Limit { name: \"in-flight\", used: 2, allowed: 1 })",
        passes: "sent",
    },
    Case {
        key: "log-rate",
        small: "log-rate = 1",
        config: "",
        act: Act::Log("print 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n"),
        trips: "dropped",
        passes: "not dropped",
    },
    Case {
        key: "ready-timeout",
        small: "ready-timeout = \"1ms\"",
        config: "start = \"burn 20000000\"",
        act: Act::Start,
        trips: "not ready within `ready-timeout` of 1ms",
        passes: "ready",
    },
    Case {
        key: "request-timeout",
        small: "request-timeout = \"1ms\"",
        config: "",
        act: Act::Tell("burn 20000000"),
        trips: "Timeout",
        passes: "0",
    },
    Case {
        key: "stop-timeout",
        small: "stop-timeout = \"1ms\"",
        config: "stop = \"burn 20000000\"",
        act: Act::Stop,
        trips: "did not stop within `stop-timeout` of 1ms",
        passes: "stopped",
    },
    Case {
        key: "file-size",
        small: "file-size = \"1 KiB\"",
        config: "",
        act: Act::Load,
        trips: "file-size",
        passes: "loaded",
    },
    Case {
        key: "code-size",
        small: "code-size = \"64 KiB\"",
        config: "",
        act: Act::Load,
        trips: "code-size",
        passes: "loaded",
    },
    Case {
        key: "compile-timeout",
        small: "compile-timeout = \"1ms\"",
        config: "",
        act: Act::Load,
        trips: "compile-timeout",
        passes: "loaded",
    },
];

/// No guest trips the least of it; a component in `hostile/files/compilers.rs` does.
const BY_A_BOMB: [&str; 1] = ["compile-memory"];

/// Only events and jobs have it: `cli/tests/command_line/limits.rs` trips it with both.
const BY_A_HANDLER: [&str; 1] = ["handler-timeout"];

/// `plain.rs` trips it, with files and with sockets.
const BY_A_PROGRAM: [&str; 1] = ["resources"];

/// `http.rs` and `host/http/tests/http` trip these.
const BY_SERVERS: [&str; 7] = [
    "http.in-flight",
    "http.rate",
    "http.bytes-in",
    "http.bytes-out",
    "http.header-size",
    "http.timeout",
    "http.total-timeout",
];

#[tokio::test]
async fn every_key_has_its_guest() {
    let config = weir_host::parse(&file("", ""), "weir.toml", &guests()).unwrap();
    let report = LimitsReport::configured(&config).await;
    let keys: BTreeSet<_> = report.extensions.first().unwrap().limits.iter().map(|limit| limit.key).collect();
    assert_eq!(
        keys,
        CASES
            .iter()
            .map(|case| case.key)
            .chain(BY_A_BOMB)
            .chain(BY_A_HANDLER)
            .chain(BY_A_PROGRAM)
            .chain(BY_SERVERS)
            .collect()
    );
}

#[tokio::test]
async fn every_limit_trips_its_guest_when_it_is_small_and_lets_it_pass_by_default() {
    for case in &CASES {
        assert!(case.small.contains(&format!("{} = ", case.key)), "{}", case.small);
        assert_eq!(case.outcome(case.small).await, case.trips, "{}", case.small);
        assert_eq!(case.outcome("").await, case.passes, "{} by default", case.key);
    }
}

impl Case {
    async fn outcome(&self, limits: &str) -> String {
        let gate = Gate::new();
        let mut config = weir_host::parse(&file(limits, self.config), "weir.toml", &guests()).unwrap();
        // Not the cache of the developer.
        config.main.cache_size = Some(0);
        let compilation = Compilation::Child {
            program: env!("CARGO_BIN_EXE_weir-compile-helper").into(),
            arguments: Vec::new(),
        };
        let builder = Main::builder(config).compilation(compilation).serve(gate.service());
        let main = builder.start().await.unwrap();
        let outcome = self.act.on(&main, &gate).await;
        assert!(main.control().status("a").is_ok());
        outcome
    }
}

impl Act {
    async fn on(&self, main: &Main, gate: &Gate) -> String {
        match *self {
            Self::Tell(command) => told(main, command).await,
            Self::Queue(times, command) => queued(main, gate, times, command).await,
            Self::Load => {
                let failure = main.control().status("a").unwrap().failures.into_iter().next();
                failure.map_or("loaded".to_owned(), |failure| failure.limit.unwrap().name.to_string())
            }
            Self::Start => {
                let status = main.control().status("a").unwrap();
                status.reason.unwrap_or_else(|| shown(status.state))
            }
            Self::Stop => {
                main.control().stop("a").await.unwrap();
                let status = main.control().status("a").unwrap();
                status.reason.unwrap_or_else(|| shown(status.state))
            }
            Self::Work(command) => {
                told(main, command).await;
                // A delay counts when it is over.
                told(main, "echo").await;
                let delayed = report(main).await.delayed.unwrap();
                let text = if delayed > Duration::ZERO { "delayed" } else { "not delayed" };
                text.to_owned()
            }
            Self::Log(command) => {
                told(main, command).await;
                let dropped = report(main).await.log_dropped.unwrap();
                let text = if dropped > 0 { "dropped" } else { "not dropped" };
                text.to_owned()
            }
        }
    }
}

/// The puppet's answer, without what differs between runs.
async fn told(main: &Main, command: &str) -> String {
    let answer = tell(main, "a", command).await.unwrap_or_else(|error| error);
    match command.split(' ').next() {
        Some("burn") if answer.parse::<u64>().is_ok() => "0".to_owned(),
        Some("large") if answer.starts_with('x') => format!("{} bytes", answer.len()),
        Some("all") if answer.lines().all(|line| line.parse::<u64>().is_ok()) => "sent".to_owned(),
        _ => answer,
    }
}

/// Outcomes of requests while the puppet waits for a gate.
async fn queued(main: &Main, gate: &Gate, times: u32, command: &str) -> String {
    let busy = tell(main, "a", "call gate@1 pass");
    let flood = async {
        while main.control().status("a").unwrap().received == 0 {
            yield_now().await;
        }
        let text = format!("{command} {}", "x".repeat(200));
        let mut waiting = Vec::new();
        let mut outcome = "taken".to_owned();
        for _ in 0..times {
            let mut call = Box::pin(tell(main, "a", &text));
            if let Some(Err(error)) = (&mut call).now_or_never() {
                outcome = error;
            } else {
                waiting.push(call);
            }
        }
        gate.open(1);
        for call in waiting {
            call.await.unwrap();
        }
        outcome
    };
    tokio::join!(busy, flood).1
}

async fn report(main: &Main) -> ExtensionLimits {
    main.control().limits_of("a").await.unwrap().extensions.pop().unwrap()
}

fn shown(state: ExtensionState) -> String {
    format!("{state:?}").to_lowercase()
}

fn file(limits: &str, config: &str) -> String {
    let path = test_guests::path("puppet");
    let name = path.file_name().unwrap().to_str().unwrap();
    format!(
        "[main]\nserves = [\"gate@1\"]\n\
         [[extension]]\nid = \"a\"\npath = \"{name}\"\nfulfills = [\"a@1\"]\nwants = [\"gate@1\"]\n\
         restart = {{ policy = \"never\" }}\nlimits = {{ {limits} }}\nconfig = {{ contract = \"a@1\"{}{config} }}\n",
        if config.is_empty() { "" } else { ", " }
    )
}

fn guests() -> std::path::PathBuf {
    test_guests::path("puppet").parent().unwrap().to_owned()
}

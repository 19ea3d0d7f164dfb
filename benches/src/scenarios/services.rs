//! Key-value stores and HTTP, from an extension and from this program. `docs/benchmarks.md` explains the figures.

mod native;

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};
use tempfile::TempDir;
use weir_host::{
    Config, Main, MainConfig,
    config::{DirMode, HttpGrant, StoreGrant},
    store::{StoreConfig, StoresConfig},
};

use self::native::{Client, Database, Durable, Server};
use super::{
    Bench, Scenario,
    calls::per_call,
    embedder::{Embedder, patient},
    progress,
};
use crate::{
    figure::{Figure, Sorted, Unit, median},
    process,
};

const NAME: &str = "services";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "values in a store, and requests by HTTP", run };

/// Bytes of a value and of a body.
const SIZE: usize = 1024;

/// Keys that are set in turn.
const KEYS: u32 = 1000;

/// Writes or requests under way.
const AT_ONCE: u32 = 64;

/// The stores, by when a write is on disk.
const EACH: &str = "each";
const WITHIN: &str = "within";

/// The target for the processor time of a request by HTTP, over the baseline.
const HTTP_CPU: f64 = 1.5;

/// What each round took: here, and natively.
type Rounds = Vec<(Duration, Duration)>;

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let rounds = bench.scale.pick(7, 3, 1);
    let [gets, sets, commits, fetches] =
        bench.scale.pick([50_000, 20_000, 500, 5000], [20_000, 5000, 200, 2000], [1000, 100, 64, 20]);
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let server = Server::start()?;
    let (weir, database) = (Site::start(bench, dir, &server)?, Arc::new(Database::create()?));
    let client = Client::start(server.address())?;
    let values = [
        ("get", "get", WITHIN, gets, Durable::Later),
        ("set, on disk within 1 s", "set", WITHIN, sets, Durable::Later),
        ("set, on disk", "set", EACH, commits, Durable::First),
    ];

    let mut measured = values.map(|_| Rounds::new());
    let (mut beside_commits, mut alone) = (Vec::new(), Vec::new());
    let (mut together, mut fetched, mut fetched_at_once) = (Rounds::new(), Vec::new(), Vec::new());
    // All values that are read must be there.
    weir.ask("set", WITHIN, KEYS)?;
    database.set(KEYS, Durable::Later)?;
    for round in 0..rounds {
        progress("stores and HTTP", round, rounds);
        for ((_, operation, store, times, durable), measured) in values.into_iter().zip(&mut measured) {
            let here = timed(|| weir.ask(operation, store, times))?;
            let there = timed(|| match operation {
                "get" => database.get(times),
                _ => database.set(times, durable),
            })?;
            measured.push((here, there));
        }
        together.push((timed(|| weir.set_at_once(commits))?, timed(|| database.set_at_once(commits))?));
        let (beside, without) = weir.neighbour(commits)?;
        beside_commits.push(beside);
        alone.push(without);
        let url = server.url();
        let here = cost(&server, || weir.ask("fetch", &url, fetches))?;
        fetched.push((here, cost(&server, || client.fetch(fetches))?));
        let here = cost(&server, || weir.fetch_at_once(&url, fetches))?;
        fetched_at_once.push((here, cost(&server, || client.fetch_at_once(fetches))?));
    }

    let figure = |case: &str, metric, rounds: &Rounds, number| {
        let (weir, native): (Vec<_>, Vec<_>) = rounds.iter().copied().unzip();
        let call = |round: &Duration| per_call(*round, number);
        Figure::compared((NAME, case), metric, Unit::Nanoseconds, (&weir, &native), call)
    };
    let mut figures = Vec::new();
    for ((case, _, _, number, _), rounds) in values.iter().zip(&measured) {
        figures.push(figure(case, "time per call", rounds, *number));
    }
    figures.push(figure("set, on disk, 64 at once", "time per call", &together, commits));
    for (metric, percent) in [("p50", 50), ("p99", 99)] {
        let all = |rounds: &[Sorted]| median(rounds.iter().map(|round| round.percentile(percent)).collect());
        let beside = all(&beside_commits);
        let figure = Figure::new(NAME, "an echo while commits are made", metric, Unit::Microseconds, beside);
        figures.push(figure.beside(all(&alone)));
    }
    for (case, costs, target) in
        [("GET of 1 KiB", &fetched, Some(HTTP_CPU)), ("GET of 1 KiB, 64 at once", &fetched_at_once, None)]
    {
        let times = costs.iter().map(|(here, there)| (here.time, there.time)).collect();
        let spent = costs.iter().map(|(here, there)| (here.spent, there.spent)).collect();
        figures.push(figure(case, "time per call", &times, fetches));
        figures.push(figure(case, "cpu per call", &spent, fetches).at_most(target));
    }
    Ok(figures)
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

struct Cost {
    time: Duration,
    /// Processor time of all but the server.
    spent: Duration,
}

fn cost(server: &Server, work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let spent = || anyhow::Ok(process::of_all_threads().saturating_sub(server.spent()?));
    let before = spent()?;
    let time = timed(work)?;
    Ok(Cost { time, spent: spent()?.saturating_sub(before) })
}

/// How many of `of` operations the caller with this number makes, if [`AT_ONCE`] callers share them.
fn share(number: u32, of: u32) -> u32 {
    of / AT_ONCE + u32::from(number < of % AT_ONCE)
}

/// Main with two stores, and the extension that uses them.
struct Site {
    weir: Embedder,
    _dir: TempDir,
}

impl Site {
    fn start(bench: &Bench, dir: TempDir, server: &Server) -> Result<Self> {
        let mut services = bench.guests.services()?;
        services.limits.http_in_flight = AT_ONCE;
        services.limits.http_rate = 100_000;
        services.limits.http_bytes_in = 1 << 30;
        for name in [EACH, WITHIN] {
            services.grants.stores.push(StoreGrant { name: name.parse()?, mode: DirMode::Rw });
        }
        services.grants.http.push(HttpGrant::new(server.url().parse()?));

        let mut main = MainConfig::default();
        main.data_dir = Some(dir.path().to_owned());
        let mut config = Config::new(main, vec![services, bench.guests.echo()?]);
        let mut within = StoreConfig::default();
        within.durable_within = Some(Duration::from_secs(1));
        let stores = [(EACH.parse()?, StoreConfig::default()), (WITHIN.parse()?, within)];
        config.set_section(stores.into_iter().collect::<StoresConfig>());
        Ok(Self { weir: Embedder::start(Main::builder(config))?, _dir: dir })
    }

    /// Has the extension do an operation so often.
    fn ask(&self, operation: &str, what: &str, times: u32) -> Result<()> {
        self.weir.run(self.asked(operation, what, times))
    }

    async fn asked(&self, operation: &str, what: &str, times: u32) -> Result<()> {
        let payload: Bytes = [&times.to_le_bytes(), what.as_bytes()].concat().into();
        self.call("services@1", operation, payload).await
    }

    /// How long an echo takes each time while the extension makes so many commits, and as often alone.
    fn neighbour(&self, commits: u32) -> Result<(Sorted, Sorted)> {
        let echo = async || {
            let start = Instant::now();
            self.call("echo@1", "echo", Bytes::from_static(&[0x5a; 16])).await?;
            anyhow::Ok(start.elapsed())
        };
        self.weir.run(async {
            let is_done = Cell::new(false);
            let commits = async {
                let outcome = self.asked("set", EACH, commits).await;
                is_done.set(true);
                outcome
            };
            let calls = async {
                let mut times = Vec::new();
                while !is_done.get() {
                    times.push(echo().await?);
                }
                Ok(times)
            };
            let ((), beside) = try_join(commits, calls).await?;
            let mut alone = Vec::new();
            for _ in 0..beside.len() {
                alone.push(echo().await?);
            }
            Ok((Sorted::new(beside), Sorted::new(alone)))
        })
    }

    /// Sets so many values from this program, 64 at a time.
    fn set_at_once(&self, times: u32) -> Result<()> {
        let value = "x".repeat(SIZE);
        let in_turn = async |first: u32| -> Result<()> {
            for number in (first..times).step_by(AT_ONCE as usize) {
                let key = format!("key-{}", number % KEYS);
                let text = serde_json::json!({ "store": EACH, "key": key, "value": value }).to_string();
                self.call("store@1", "set", text.into()).await?;
            }
            Ok(())
        };
        self.weir.run(async { try_join_all((0..AT_ONCE).map(in_turn)).await.map(drop) })
    }

    /// Has the extension fetch so often, for [`AT_ONCE`] calls at a time.
    fn fetch_at_once(&self, url: &str, times: u32) -> Result<()> {
        let calls = (0..AT_ONCE).map(|first| self.asked("fetch", url, share(first, times)));
        self.weir.run(async { try_join_all(calls).await.map(drop) })
    }

    async fn call(&self, contract: &str, operation: &str, payload: Bytes) -> Result<()> {
        self.weir.client().call_with(contract, operation, payload, patient()).await?;
        Ok(())
    }
}

//! One well-behaved extension beside sixteen hostile ones on the single worker. `docs/benchmarks.md` explains
//! the formula and the figures.

pub(super) mod pieces;

use std::time::Duration;

use anyhow::{Result, ensure};
use weir_host::{Builder, Config, ExtensionConfig, Main, MainConfig};

use super::{
    Bench, Scenario,
    client::{Host, Kind},
    progress,
};
use crate::{
    figure::{Figure, Unit},
    statistics::{Sorted, Summary},
};

const NAME: &str = "isolation";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "one good extension beside sixteen hostile ones", run };

/// Slices that the well-behaved one may wait, beside one bulk operation.
const ALLOWED_SLICES: f64 = 20.0;

/// The sixteen, by ids that name their behaviour (`benches/guests/src/hostile.rs`). Two of them play with a
/// ball together.
const HOSTILE: [&[&str]; 15] = [
    &["spin"],
    &["divide"],
    &["chase"],
    &["fill"],
    &["grow"],
    &[TABLE],
    &["recursion"],
    &["flood"],
    &["ping", "pong"],
    &["receive"],
    &["publish"],
    &["clock"],
    &["poll"],
    &["random"],
    &["output"],
];

/// This one is not written in Rust.
const TABLE: &str = "table";

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    progress("a slice and a stall alone", 0, 1);
    let pieces = pieces::measure(bench)?;
    let filling = format!("filling {} KiB", pieces.filled / 1024);
    let mut figures = vec![
        Figure::new(NAME, "counting", "slice", Unit::Microseconds, pieces.counting),
        Figure::new(NAME, "dividing", "slice", Unit::Microseconds, pieces.dividing),
        Figure::new(NAME, "chasing pointers", "slice", Unit::Microseconds, pieces.chasing),
        Figure::new(NAME, filling, "stall", Unit::Microseconds, pieces.stall),
    ];
    for kind in [Kind::Blocking, Kind::Async] {
        let host = Host::start(kind, main(bench)?)?;
        let everybody = HOSTILE.concat();
        let (rounds, calls) = (bench.scale.pick(10, 3, 1), bench.scale.pick(1000, 300, 5));
        let (alone, beside) = measure(&host, &everybody, rounds, calls, &kind.to_string())?;
        let case = format!("{kind} beside all");
        figures.extend(latencies(&case, &alone, &beside));
        // A wait shorter than a stall is no slice at all.
        let slices = |round: &Sorted| (round.percentile(99) - pieces.stall).max(0.0) / pieces.slice();
        let slices: Vec<_> = beside.iter().map(slices).collect();
        figures.push(
            Figure::of_rounds(NAME, case, "p99 less one stall", Unit::Slices, &slices)
                .at_most(ALLOWED_SLICES),
        );
    }
    let host = Host::start(Kind::Blocking, main(bench)?)?;
    for group in HOSTILE {
        let case = format!("beside {}", group.join(" and "));
        let calls = bench.scale.pick(1000, 100, 2);
        let (alone, beside) = measure(&host, group, 1, calls, &case)?;
        figures.extend(latencies(&case, &alone, &beside));
    }
    Ok(figures)
}

fn measure(
    host: &Host,
    hostile: &[&str],
    rounds: usize,
    calls: usize,
    what: &str,
) -> Result<(Vec<Sorted>, Vec<Sorted>)> {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        progress(what, round, rounds);
        alone.push(Sorted::new(host.echo(calls)?));
        host.start_all(hostile.iter().copied())?;
        let before = used(host, hostile)?;
        beside.push(Sorted::new(host.echo(calls)?));
        // An extension that ended or slept was not hostile.
        for ((id, before), after) in hostile.iter().zip(before).zip(used(host, hostile)?) {
            ensure!(after > before, "`{id}` did nothing meanwhile");
        }
        host.stop_all(hostile.iter().copied())?;
    }
    Ok((alone, beside))
}

/// Processor time of each. All must run.
fn used(host: &Host, ids: &[&str]) -> Result<Vec<Duration>> {
    ids.iter().map(|id| Ok(host.running(id)?.cpu)).collect()
}

fn latencies(case: &str, alone: &[Sorted], beside: &[Sorted]) -> Vec<Figure> {
    let (alone, beside) = (Summary::of(alone), Summary::of(beside));
    let figure = |metric, value| Figure::new(NAME, case, metric, Unit::Microseconds, value);
    let mut figures =
        vec![figure("p50", beside.p50).beside(alone.p50), figure("p99", beside.p99).beside(alone.p99)];
    if let (Some(alone), Some(beside)) = (alone.rounds, beside.rounds) {
        figures.push(figure("p99 of the worst round", beside.p99_worst).beside(alone.p99_worst));
        figures.push(figure("p99 spread", beside.p99_spread).beside(alone.p99_spread));
    }
    figures.push(figure("max", beside.max).beside(alone.max));
    figures
}

/// Main with the echo, the hostile extensions at rest, and their peers.
fn main(bench: &Bench) -> Result<Builder> {
    let hostile = HOSTILE.iter().copied().flatten().map(|id| hostile(bench, id));
    let mut extensions = hostile.collect::<Result<Vec<_>>>()?;
    let mut mute = bench.guests.of_kind("mute", "mute")?;
    mute.fulfills = vec!["mute@1".parse()?];
    mute.autostart = true;
    extensions.extend([bench.guests.echo()?, mute]);
    Ok(Main::builder(Config::new(MainConfig::default(), extensions)))
}

fn hostile(bench: &Bench, id: &str) -> Result<ExtensionConfig> {
    if id == TABLE {
        return bench.guests.table();
    }
    let kind = if id == "ping" || id == "pong" { "balls" } else { id };
    let mut hostile = bench.guests.of_kind(id, kind)?;
    match id {
        "flood" => hostile.wants = vec!["mute@1".parse()?],
        "ping" | "pong" => {
            let other = if id == "ping" { "pong" } else { "ping" };
            hostile.config.insert("other".to_owned(), other.to_owned());
            hostile.publishes = vec!["ball".parse()?];
            hostile.subscribes = vec!["ball".parse()?];
        }
        "receive" | "publish" => {
            hostile.publishes = vec!["own".parse()?];
            hostile.subscribes = vec!["own".parse()?];
        }
        _ => {}
    }
    Ok(hostile)
}

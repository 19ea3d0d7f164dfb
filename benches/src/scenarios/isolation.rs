//! One well-behaved extension beside sixteen hostile ones on the single worker. `docs/benchmarks.md` explains
//! the formula and the figures.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use weir_host::{Builder, ExtensionConfig, blocking::wait};

use super::{
    Bench, Scenario,
    embedder::{Embedder, builder},
    progress,
};
use crate::figure::{Figure, Sorted, Unit, greatest, median, microseconds};

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

/// The hostile extension that is not written in Rust.
const TABLE: &str = "table";

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    progress("a slice and a stall alone", 0, 1);
    let pieces = Pieces::measure(bench)?;
    let filling = format!("filling {} KiB", pieces.filled / 1024);
    let mut figures = vec![
        Figure::new(NAME, "counting", "slice", Unit::Microseconds, pieces.counting),
        Figure::new(NAME, "dividing", "slice", Unit::Microseconds, pieces.dividing),
        Figure::new(NAME, "chasing pointers", "slice", Unit::Microseconds, pieces.chasing),
        Figure::new(NAME, filling, "stall", Unit::Microseconds, pieces.stall),
    ];
    for (client, is_blocking) in [("blocking client", true), ("async client", false)] {
        let host = Embedder::start(main(bench)?)?;
        let everybody = HOSTILE.concat();
        let (rounds, calls) = (bench.scale.pick(10, 3, 1), bench.scale.pick(1000, 300, 5));
        let (alone, beside) = measure((&host, is_blocking), &everybody, rounds, calls, client)?;
        let case = format!("{client} beside all");
        figures.extend(latencies(&case, &alone, &beside));
        // A wait shorter than a stall is no slice at all.
        let slices = |round: &Sorted| (round.percentile(99) - pieces.stall).max(0.0) / pieces.slice();
        let slices: Vec<_> = beside.iter().map(slices).collect();
        figures.push(
            Figure::of_rounds(NAME, case, "p99 less one stall", Unit::Slices, &slices)
                .at_most(ALLOWED_SLICES),
        );
    }
    let host = Embedder::start(main(bench)?)?;
    for group in HOSTILE {
        let case = format!("beside {}", group.join(" and "));
        let calls = bench.scale.pick(1000, 100, 2);
        let (alone, beside) = measure((&host, true), group, 1, calls, &case)?;
        figures.extend(latencies(&case, &alone, &beside));
    }
    Ok(figures)
}

fn measure(
    (host, is_blocking): (&Embedder, bool),
    hostile: &[&str],
    rounds: usize,
    calls: usize,
    what: &str,
) -> Result<(Vec<Sorted>, Vec<Sorted>)> {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        progress(what, round, rounds);
        alone.push(Sorted::new(host.echo(is_blocking, calls)?));
        host.start_all(hostile)?;
        let before = used(host, hostile)?;
        beside.push(Sorted::new(host.echo(is_blocking, calls)?));
        // An extension that ended or slept was not hostile.
        for ((id, before), after) in hostile.iter().zip(before).zip(used(host, hostile)?) {
            ensure!(after > before, "`{id}` did nothing meanwhile");
        }
        host.stop_all(hostile)?;
    }
    Ok((alone, beside))
}

/// Processor time of each. All must run.
fn used(host: &Embedder, ids: &[&str]) -> Result<Vec<Duration>> {
    ids.iter().map(|id| Ok(host.running(id)?.cpu)).collect()
}

fn latencies(case: &str, alone: &[Sorted], beside: &[Sorted]) -> Vec<Figure> {
    let figure = |metric, percent, of: fn(Vec<f64>) -> f64| {
        let all = |rounds: &[Sorted]| of(rounds.iter().map(|round| round.percentile(percent)).collect());
        Figure::new(NAME, case, metric, Unit::Microseconds, all(beside)).beside(all(alone))
    };
    let mut figures = vec![figure("p50", 50, median), figure("p99", 99, median)];
    if beside.len() > 1 {
        figures.push(figure("p99 of the worst round", 99, greatest));
        figures.push(figure("p99 spread", 99, |rounds| {
            let least = rounds.iter().copied().fold(f64::NAN, f64::min);
            greatest(rounds) - least
        }));
    }
    figures.push(figure("max", 100, greatest));
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
    Ok(builder(extensions))
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

/// The parts of the bounds, measured alone, in microseconds: one slice of fuel, and one bulk operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    /// One slice's fuel in a guest that counts.
    counting: f64,
    /// One slice's fuel in a guest that divides.
    dividing: f64,
    /// One slice's fuel in a guest that follows pointers through its memory, against all caches.
    chasing: f64,
    /// Filling the memory of a hostile guest.
    pub(super) stall: f64,
    /// Bytes of that memory.
    filled: u64,
}

impl Pieces {
    pub(super) fn measure(bench: &Bench) -> Result<Self> {
        let [counting, dividing, chasing] = ["count", "divide", "chase"].map(|work| slice(bench, work));
        let (stall, filled) = stall(bench)?;
        Ok(Self { counting: counting?, dividing: dividing?, chasing: chasing?, stall, filled })
    }

    /// The longest slice of code: fuel counts instructions, and these differ in time.
    pub(super) fn slice(&self) -> f64 {
        self.counting.max(self.dividing).max(self.chasing)
    }
}

/// Lets a guest use up much fuel at this work. Returns the time of one slice, in microseconds.
fn slice(bench: &Bench, work: &str) -> Result<f64> {
    let fuel: u32 = bench.scale.pick(1_000_000_000, 200_000_000, 10_000_000);
    let mut burns = bench.guests.of_kind("burns", "probe")?;
    burns.limits.fuel_per_message = fuel.into();
    let slice = u32::try_from(burns.limits.fixed().fuel_slice)?;
    let host = probe(burns)?;
    let times = (0..bench.scale.pick(5, 3, 1)).map(|_| {
        host.start_all(&["burns"])?;
        let (time, outcome) = timed(|| ask(&host, work));
        // The record of the failure may come after the answer. The stop waits for it.
        host.stop_all(&["burns"])?;
        let failures = host.control().status("burns")?.failures;
        let burnt = failures.last().is_some_and(|failure| failure.cause.contains("`fuel-per-message`"));
        ensure!(burnt, "the fuel was not used up: {outcome:?}, {:?}", failures.last());
        Ok(microseconds(time) * f64::from(slice) / f64::from(fuel))
    });
    Ok(median(times.collect::<Result<_>>()?))
}

/// The time to fill a guest's memory, in microseconds, and the bytes of that memory.
fn stall(bench: &Bench) -> Result<(f64, u64)> {
    let host = probe(bench.guests.of_kind("fills", "probe")?)?;
    host.start_all(&["fills"])?;
    let filled = ask(&host, "nothing")?;
    let times = (0..bench.scale.pick(101, 31, 3)).map(|_| {
        let (nothing, outcome) = timed(|| ask(&host, "nothing"));
        outcome?;
        let (fill, outcome) = timed(|| ask(&host, "fill"));
        outcome?;
        Ok(microseconds(fill) - microseconds(nothing))
    });
    Ok((median(times.collect::<Result<_>>()?), str::from_utf8(&filled)?.parse()?))
}

fn probe(mut extension: ExtensionConfig) -> Result<Embedder> {
    extension.fulfills = vec!["probe@1".parse()?];
    Embedder::start(builder(vec![extension]))
}

fn ask(host: &Embedder, operation: &str) -> Result<Bytes> {
    Ok(wait(host.client().call("probe@1", operation, ""))?)
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(all: &[[u64; 3]]) -> Vec<Sorted> {
        all.iter().map(|times| Sorted::new(times.map(Duration::from_micros).to_vec())).collect()
    }

    #[test]
    fn one_round_out_of_line_moves_the_spread_and_not_the_median() {
        let all = rounds(&[[1, 2, 3], [2, 3, 4], [50, 60, 70]]);
        let values: Vec<_> = latencies("c", &all, &all).into_iter().map(|figure| figure.value).collect();
        assert_eq!(values, [3.0, 4.0, 70.0, 67.0, 70.0]);
    }

    #[test]
    fn one_round_has_no_worst_and_no_spread() {
        let one = rounds(&[[1, 2, 3]]);
        let metrics: Vec<_> = latencies("c", &one, &one).into_iter().map(|figure| figure.metric).collect();
        assert_eq!(metrics, ["p50", "p99", "max"]);
    }
}

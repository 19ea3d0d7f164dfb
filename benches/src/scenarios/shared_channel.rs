//! One queue with more and more producers and consumers: extensions, or half of them native threads.
//! `docs/benchmarks.md` explains the figures.

mod jobs;
mod sides;

use std::{fmt, time::Duration};

use anyhow::{Context, Result};

use self::sides::{Native, Weir};
use super::{Bench, Scenario, in_turns, progress};
use crate::figure::{Figure, Unit, greatest};

const NAME: &str = "shared-channel";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "one queue with 1 to 24 readers and as many writers", run };

/// Readers, and as many writers.
const COUNTS: [u32; 8] = [1, 2, 4, 8, 12, 16, 20, 24];

/// Jobs that may wait in the queue.
const CAPACITY: u32 = 256;

/// Bytes of a job, for the cases by number of readers.
const SMALL: u32 = 64;

/// Bytes of a job, for the cases by size: the packets of `broadcast`.
const SIZES: [u32; 5] = [1_000, 2_000, 5_000, 10_000, 20_000];

/// Readers, and as many writers, for the cases by size.
const READERS_OF_SIZES: u32 = 8;

/// Bytes of a job, for the cases with readers that take in batches.
const SIZES_IN_BATCHES: [u32; 2] = [SMALL, 1_000];

/// Jobs that such a reader takes at once, at most.
const BATCH: u32 = 64;

/// The target for the busiest reader's share, over the laziest's.
const ALLOWED_SPREAD: f64 = 2.0;

/// The target for all extensions, over one.
const ALLOWED_GROWTH: f64 = 1.2;

/// The kinds of readers and writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    /// Extensions, beside tasks of one thread.
    Extensions,
    /// Half of the readers and writers are native threads: beside extensions, and beside tasks.
    Half,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Extensions => "all extensions",
            Self::Half => "half native threads",
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Split {
    /// Extensions, or tasks of one thread.
    inner_readers: u32,
    inner_writers: u32,
    thread_readers: u32,
    thread_writers: u32,
}

impl Split {
    /// Splits this many readers and as many writers. If the number is odd, one reader more is an extension, and one
    /// writer more is a thread.
    fn of(mix: Mix, count: u32) -> Self {
        let (thread_readers, thread_writers) = match mix {
            Mix::Extensions => (0, 0),
            Mix::Half => (count / 2, count.div_ceil(2)),
        };
        let (inner_readers, inner_writers) = (count - thread_readers, count - thread_writers);
        Self { inner_readers, inner_writers, thread_readers, thread_writers }
    }

    fn writers(self) -> u32 {
        self.inner_writers + self.thread_writers
    }
}

#[derive(Clone, Copy, Debug)]
struct Jobs {
    count: u32,
    bytes: u32,
    /// The most that an extension takes at once. 1: they come one by one.
    at_once: u32,
}

#[derive(Clone, Debug)]
struct Round {
    /// From the first job to the last.
    time: Duration,
    /// Processor time of all threads meanwhile.
    cpu: Duration,
    /// Jobs that each reader got.
    shares: Vec<u32>,
}

impl Round {
    /// The busiest reader's share over the laziest's.
    fn spread(&self) -> f64 {
        let laziest = self.shares.iter().min().copied().unwrap_or_default().max(1);
        f64::from(self.shares.iter().max().copied().unwrap_or_default()) / f64::from(laziest)
    }
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let jobs = Jobs { count: bench.scale.pick(120_000, 48_000, 240), bytes: SMALL, at_once: 1 };
    let weir = Weir::start(bench, COUNTS.into_iter().max().unwrap_or_default())?;
    let native = Native::start()?;
    let mut figures = Vec::new();
    for mix in [Mix::Extensions, Mix::Half] {
        let mut measured = COUNTS.map(|_| (Vec::new(), Vec::new()));
        let rounds = bench.scale.pick(7, 3, 1);
        for round in 0..rounds {
            progress(&mix.to_string(), round, rounds);
            for (count, (weir_rounds, native_rounds)) in COUNTS.into_iter().zip(&mut measured) {
                let split = Split::of(mix, count);
                let context = || format!("{mix}, {count} readers");
                native_rounds.push(native.round(split, jobs).with_context(context)?);
                weir_rounds.push(weir.round(split, jobs).with_context(context)?);
            }
        }
        figures.extend(compared(mix, &measured)?);
    }
    for bytes in SIZES {
        figures.extend(of_size(bench, &weir, &native, jobs_of(bench, bytes, 1))?);
    }
    for bytes in SIZES_IN_BATCHES {
        figures.extend(of_size(bench, &weir, &native, jobs_of(bench, bytes, BATCH))?);
    }
    Ok(figures)
}

fn jobs_of(bench: &Bench, bytes: u32, at_once: u32) -> Jobs {
    Jobs { count: bench.scale.pick(24_000, 9_600, 240), bytes, at_once }
}

fn of_size(bench: &Bench, weir: &Weir, native: &Native, jobs: Jobs) -> Result<Vec<Figure>> {
    let size =
        if jobs.bytes < 1000 { format!("{} B", jobs.bytes) } else { format!("{} KB", jobs.bytes / 1000) };
    let way = if jobs.at_once > 1 { ", in batches" } else { "" };
    let case = format!("{size}, {READERS_OF_SIZES} readers{way}");
    let split = Split::of(Mix::Extensions, READERS_OF_SIZES);
    let sides: [&dyn Fn() -> Result<Round>; 2] = [&|| native.round(split, jobs), &|| weir.round(split, jobs)];
    let [native, weir] = in_turns(&case, bench.scale.pick(7, 3, 1), sides).with_context(|| case.clone())?;
    let count = f64::from(jobs.count);
    let figure = |metric, unit, of: &dyn Fn(&Round) -> f64| {
        Figure::compared((NAME, &case), metric, unit, (&weir, &native), of)
    };
    Ok(vec![
        figure("jobs", Unit::PerSecond, &|round| count / round.time.as_secs_f64()),
        figure("cpu", Unit::Percent, &|round| 100.0 * round.cpu.div_duration_f64(round.time)),
        figure("cpu per job", Unit::Microseconds, &|round| 1e6 * round.cpu.as_secs_f64() / count),
    ])
}

fn compared(mix: Mix, measured: &[(Vec<Round>, Vec<Round>)]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (count, (weir, native)) in COUNTS.into_iter().zip(measured) {
        let case = format!("{mix}, {count}");
        let time = |round: &Round| 1e3 * round.time.as_secs_f64();
        figures.push(Figure::compared((NAME, &case), "time", Unit::Milliseconds, (weir, native), time));
        if count > 1 {
            let allowed = if mix == Mix::Extensions { ALLOWED_SPREAD } else { spread(native) };
            figures.push(Figure::new(NAME, case, "spread", Unit::Times, spread(weir)).beside(allowed));
        }
    }
    let ends = measured.first().zip(measured.last()).context("nothing was measured")?;
    let ((weir_at_1, native_at_1), (weir_at_24, native_at_24)) = ends;
    let (weir, native) = (growth(weir_at_1, weir_at_24), growth(native_at_1, native_at_24));
    let figure =
        |metric, rounds: &[f64]| Figure::of_rounds(NAME, "growth-1-to-24", metric, Unit::Times, rounds);
    figures.extend(match mix {
        Mix::Extensions => {
            vec![figure("all extensions", &weir).at_most(ALLOWED_GROWTH), figure("native tasks", &native)]
        }
        Mix::Half => vec![figure("half native threads", &weir).beside_rounds(&weir, &native).at_most(1.0)],
    });
    Ok(figures)
}

/// The time with more over the time with one, by round.
fn growth(with_one: &[Round], with_more: &[Round]) -> Vec<f64> {
    with_one.iter().zip(with_more).map(|(one, more)| more.time.div_duration_f64(one.time)).collect()
}

/// The greatest spread of all rounds.
fn spread(rounds: &[Round]) -> f64 {
    greatest(rounds.iter().map(Round::spread))
}

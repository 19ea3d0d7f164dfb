//! What waits at no cost: extensions, beside native receivers that look every 5 ms, and connections in other scenarios.
//! `docs/benchmarks.md` explains the figures.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{
    Bench, Scenario,
    device::{Device, SETTLING, Site, wait_until},
    progress,
};
use crate::{
    figure::{Figure, Unit, greatest},
    process::{Process, TICKS, Thread},
};

const NAME: &str = "idle";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "extensions that wait, beside native receivers that look every 5 ms", run };

/// Waiting extensions and receivers of equal number, and their measurements.
#[derive(Debug)]
struct Waiting {
    count: u32,
    weir: Device,
    native: Device,
    weir_spans: Vec<Span>,
    native_spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    ticks: f64,
    switches: f64,
    /// The part of one processor's time, in per cent.
    cpu: f64,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let site = Site::new(bench, false)?;
    let counts: &[u32] = bench.scale.pick(&[1, 10, 100, 1000], &[1, 10, 100, 1000], &[1, 10]);
    let start = |count: &u32| {
        Ok(Waiting {
            count: *count,
            weir: site.idle(*count)?,
            native: site.native("polled", *count)?,
            weir_spans: Vec::new(),
            native_spans: Vec::new(),
        })
    };
    progress("starting", 0, 1);
    let mut all = counts.iter().map(start).collect::<Result<Vec<_>>>()?;
    wait_until(Instant::now() + bench.scale.pick(SETTLING, SETTLING, Duration::ZERO));
    let rounds = bench.scale.pick(5, 1, 1);
    for round in 0..rounds {
        progress("waiting", round, rounds);
        measure(&mut all, span(bench))?;
    }
    let mut figures = Vec::new();
    for waiting in &mut all {
        waiting.weir.ensure_answers(waiting.count)?;
        waiting.native.ensure_answers(waiting.count)?;
        let (case, spans) =
            (format!("{} waiting", waiting.count), (&*waiting.weir_spans, &*waiting.native_spans));
        figures.extend(counted(NAME, &case, spans, |span| *span));
        figures.push(Figure::compared((NAME, &case), "cpu", Unit::Percent, spans, |span| span.cpu));
    }
    Ok(figures)
}

/// The time of one look at what waits.
fn span(bench: &Bench) -> Duration {
    Duration::from_millis(bench.scale.pick(10_000, 1000, 200))
}

/// Looks at all processes at once, since a waiting process takes nothing from the others.
fn measure(all: &mut [Waiting], span: Duration) -> Result<()> {
    let threads = |all: &[Waiting]| {
        let both =
            |waiting: &Waiting| Ok([waiting.weir.process().threads()?, waiting.native.process().threads()?]);
        all.iter().map(both).collect::<Result<Vec<_>>>()
    };
    let (start, before) = (Instant::now(), threads(all)?);
    wait_until(start + span);
    let (after, took) = (threads(all)?, start.elapsed());
    for ((waiting, before), after) in all.iter_mut().zip(before).zip(after) {
        let [[weir_before, native_before], [weir_after, native_after]] = [before, after];
        for (number, thread) in &weir_after {
            if weir_before.get(number) != Some(thread) {
                eprintln!("  {} extensions: `{}` has run", waiting.count, thread.name);
            }
        }
        waiting.weir_spans.push(Span::between(&weir_before, &weir_after, took));
        waiting.native_spans.push(Span::between(&native_before, &native_after, took));
    }
    Ok(())
}

/// The most ticks and context switches of any round, since a single wake-up is one too many. Without rounds of the
/// baseline, there is none.
fn counted<T>(
    scenario: &str,
    case: &str,
    (rounds, baselines): (&[T], &[T]),
    span: fn(&T) -> Span,
) -> [Figure; 2] {
    let counted = |metric, of: fn(Span) -> f64| {
        let most = |rounds: &[T]| greatest(rounds.iter().map(span).map(of));
        let figure = Figure::new(scenario, case, metric, Unit::Count, most(rounds)).at_most(0.0);
        if baselines.is_empty() { figure } else { figure.beside(most(baselines)) }
    };
    [counted("ticks", |span| span.ticks), counted("context switches", |span| span.switches)]
}

impl Span {
    fn between(before: &BTreeMap<u32, Thread>, after: &BTreeMap<u32, Thread>, took: Duration) -> Self {
        let more = |of: fn(&Thread) -> u32| {
            let more = |(number, thread)| of(thread) - before.get(number).map_or(0, of);
            after.iter().map(more).sum::<u32>()
        };
        let ticks = f64::from(more(|thread| thread.ticks));
        // A thread that has ended has run to do so.
        let ended = before.keys().filter(|number| !after.contains_key(number)).count();
        let switches = more(|thread| thread.switches) + u32::try_from(ended).unwrap_or(u32::MAX);
        Self { ticks, switches: switches.into(), cpu: 100.0 * ticks / TICKS / took.as_secs_f64() }
    }
}

/// Connections that a process has in a first look, and in a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    few: u32,
    many: u32,
}

/// What connections that wait take of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    /// Private memory of one more, in KiB.
    each: f64,
    span: Span,
}

/// Connections at the second look, unless the run is for smoke.
pub(super) const MANY: u32 = 1024;

impl Counts {
    pub(super) fn new(bench: &Bench) -> Self {
        let [few, many] = bench.scale.pick([64, MANY], [64, MANY], [2, 10]);
        Self { few, many }
    }

    /// Looks at a process with few connections, and with many. `connect` starts a program that holds so many. What new
    /// connections leave behind has gone after `rest`.
    pub(super) fn wait(
        self,
        bench: &Bench,
        process: &Process,
        rest: Duration,
        connect: impl Fn(u32) -> Result<Device>,
    ) -> Result<Waited> {
        let mut first = connect(self.few)?;
        wait_until(Instant::now() + bench.scale.pick(SETTLING, SETTLING, Duration::ZERO));
        let before = process.memory()?.private();
        let mut others = connect(self.many - self.few)?;
        wait_until(Instant::now() + rest);
        let (start, threads) = (Instant::now(), process.threads()?);
        wait_until(start + span(bench));
        let span = Span::between(&threads, &process.threads()?, start.elapsed());
        // In a short run, the process may still give back memory of its start.
        let more = (process.memory()?.private() - before).max(0.0);
        for connections in [&mut first, &mut others] {
            ensure!(connections.ask("")? == "well", "a connection has ended");
        }
        Ok(Waited { each: more / f64::from(self.many - self.few), span })
    }

    /// The figures of all rounds. Without rounds of the baseline, there is none.
    pub(super) fn figures(self, scenario: &str, rounds: &[Waited], baselines: &[Waited]) -> Vec<Figure> {
        let Self { few, many } = self;
        let mut figures =
            counted(scenario, &format!("{many} idle"), (rounds, baselines), |waited| waited.span).to_vec();
        let case = format!("from {few} to {many} idle");
        figures.push(Figure::compared(
            (scenario, &case),
            "private, each",
            Unit::Kibibytes,
            (rounds, baselines),
            |waited| waited.each,
        ));
        figures
    }
}

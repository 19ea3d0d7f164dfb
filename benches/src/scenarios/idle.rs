//! Extensions that wait at no cost, beside native receivers that look every 5 ms. `docs/benchmarks.md`
//! explains the figures.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{
    Bench, Scenario,
    client::wait_until,
    device::{Device, SETTLING, Site},
    progress,
};
use crate::{
    figure::{Figure, Unit},
    process::Thread,
};

const NAME: &str = "idle";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "extensions that wait, beside native receivers that look every 5 ms", run };

const TICKS: f64 = 100.0;

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
pub(super) struct Span {
    pub(super) ticks: f64,
    pub(super) switches: f64,
    /// Of one processor, in per cent.
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
    let milliseconds = bench.scale.pick(10_000, 1000, 200);
    let rounds = bench.scale.pick(5, 1, 1);
    for round in 0..rounds {
        progress("waiting", round, rounds);
        measure(&mut all, Duration::from_millis(milliseconds))?;
    }
    let mut figures = Vec::new();
    for waiting in &mut all {
        waiting.weir.ensure_answers(waiting.count)?;
        waiting.native.ensure_answers(waiting.count)?;
        figures.extend(waiting.figures());
    }
    Ok(figures)
}

/// All at once: a waiting process takes nothing from the others.
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

impl Waiting {
    fn figures(&self) -> [Figure; 3] {
        let case = format!("{} waiting", self.count);
        let all = |spans: &[Span], of: fn(&Span) -> f64| spans.iter().map(of).collect::<Vec<_>>();
        // A single wake-up in any round is one too many.
        let greatest = |spans, of| all(spans, of).into_iter().fold(f64::NAN, f64::max);
        let counted = |metric, of| {
            Figure::new(NAME, &case, metric, Unit::Count, greatest(&self.weir_spans, of))
                .beside(greatest(&self.native_spans, of))
                .at_most(0.0)
        };
        let cpu = |spans| all(spans, |span| span.cpu);
        [
            counted("ticks", |span| span.ticks),
            counted("context switches", |span| span.switches),
            Figure::of_rounds(NAME, &case, "cpu", Unit::Percent, &cpu(&self.weir_spans))
                .beside_rounds(&cpu(&self.weir_spans), &cpu(&self.native_spans)),
        ]
    }
}

impl Span {
    pub(super) fn between(
        before: &BTreeMap<u32, Thread>,
        after: &BTreeMap<u32, Thread>,
        took: Duration,
    ) -> Self {
        let more = |of: fn(&Thread) -> u32| {
            let more = |(number, thread)| of(thread) - before.get(number).map_or(0, of);
            after.iter().map(more).sum::<u32>()
        };
        let ticks = f64::from(more(|thread| thread.ticks));
        // An ended thread has run for that.
        let ended = before.keys().filter(|number| !after.contains_key(number)).count();
        let switches = more(|thread| thread.switches) + u32::try_from(ended).unwrap_or(u32::MAX);
        Self { ticks, switches: switches.into(), cpu: 100.0 * ticks / TICKS / took.as_secs_f64() }
    }
}

//! From Main to an extension and back, from a task of Main's own thread. `docs/benchmarks.md` explains the
//! figures.

pub(super) mod native;
mod weir;

use anyhow::{Context, Result};

use self::{native::Native, weir::Weir};
use super::{
    Bench, Scenario,
    calls::{Calls, SIZES, per_call},
    progress,
};
use crate::figure::{Figure, Unit};

const NAME: &str = "round-trip";

pub(super) const SCENARIO: Scenario = Scenario { name: NAME, about: "Main calls an extension", run };

/// Concurrent calls in the pipelined cases.
const PIPELINED: u32 = 64;

#[derive(Debug)]
struct Case {
    name: String,
    size: u32,
    at_once: u32,
    way: Way,
    /// The target and the stretch target, over the baseline.
    target: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// An extension with its own loop.
    Raw,
    /// An extension with the SDK's handlers.
    Sdk,
    /// A native task, called without deadlines.
    WithoutDeadlines,
    /// A native task, through two channels.
    Channels,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let number = bench.scale.pick(200_000, 100_000, 1000);
    let (raw, sdk) = (Weir::start(bench, "echo-raw")?, Weir::start(bench, "echo")?);
    let native = Native::start()?;
    let rounds = bench.scale.pick(7, 3, 1);
    let cases = cases();
    let mut measured: Vec<_> = cases.iter().map(|_| (Vec::new(), Vec::new())).collect();
    for round in 0..rounds {
        progress("calls", round, rounds);
        for (case, (beside, baseline)) in cases.iter().zip(&mut measured) {
            let context = || case.name.clone();
            let calls = Calls { number, size: case.size, at_once: case.at_once };
            baseline.push(native.round(calls).with_context(context)?);
            let time = match case.way {
                Way::Raw => raw.round(calls),
                Way::Sdk => sdk.round(calls),
                Way::WithoutDeadlines => native.round_without_deadlines(calls),
                Way::Channels => native.round_through_channels(calls),
            };
            beside.push(time.with_context(context)?);
        }
    }
    let figures = cases.into_iter().zip(measured).map(|(case, (beside, baseline))| {
        let (beside, baseline) = (per_call(&beside, number), per_call(&baseline, number));
        let figure = Figure::of_rounds(NAME, case.name, "time per call", Unit::Nanoseconds, &beside);
        let figure = figure.beside_rounds(&beside, &baseline);
        match case.target {
            Some((target, stretch)) => figure.at_most(target).stretch(stretch),
            None => figure,
        }
    });
    Ok(figures.collect())
}

fn cases() -> Vec<Case> {
    let one = |name: &str, size, way, target| Case { name: name.to_owned(), size, at_once: 1, way, target };
    let mut cases: Vec<_> = SIZES
        .iter()
        .map(|&(name, size)| one(name, size, Way::Raw, Some((if size > 1024 { 2.6 } else { 2.25 }, 1.75))))
        .collect();
    cases.push(one("1 KiB, through the SDK", 1024, Way::Sdk, None));
    let name = format!("1 KiB, {PIPELINED} under way");
    cases.push(Case { name, size: 1024, at_once: PIPELINED, way: Way::Raw, target: None });
    cases.push(one("1 KiB, native without deadlines", 1024, Way::WithoutDeadlines, None));
    cases.extend(
        SIZES.iter().map(|&(name, size)| one(&format!("{name}, two channels"), size, Way::Channels, None)),
    );
    cases
}

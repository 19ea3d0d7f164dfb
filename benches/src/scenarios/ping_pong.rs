//! One byte there and back between the two of many pairs, again and again: over channels and over TCP.
//! `docs/benchmarks.md` explains the figures.

mod channels;
mod tcp;

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Bench, Scenario};
use crate::{
    figure::{Figure, Unit},
    usage::{self, Times},
};

const NAME: &str = "ping-pong";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "one byte there and back, over channels and over TCP", run };

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = channels::run(bench)?;
    figures.extend(tcp::run(bench)?);
    Ok(figures)
}

/// The times of a case, each beside a round of the baseline.
#[derive(Debug)]
struct Measured {
    case: String,
    exchanges: u32,
    /// The target for an exchange, over the baseline.
    target: Option<f64>,
    weir: Vec<Round>,
    native: Vec<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    time: Duration,
    used: Times,
}

impl Round {
    fn of(exchange: impl FnOnce() -> Result<()>) -> Result<Self> {
        let (before, start) = (usage::of_this_process()?, Instant::now());
        exchange()?;
        let (time, after) = (start.elapsed(), usage::of_this_process()?);
        let used = Times { user: after.user - before.user, system: after.system - before.system };
        Ok(Self { time, used })
    }
}

impl Measured {
    fn new(case: String, exchanges: u32, target: Option<f64>) -> Self {
        Self { case, exchanges, target, weir: Vec::new(), native: Vec::new() }
    }

    fn figures(&self) -> [Figure; 5] {
        let figure = |metric, unit, value: &dyn Fn(&Round) -> f64| {
            let [weir, native] = [&self.weir, &self.native].map(|rounds| rounds.iter().map(value).collect());
            let (weir, native): (Vec<_>, Vec<_>) = (weir, native);
            Figure::of_rounds(NAME, &self.case, metric, unit, &weir).beside_rounds(&weir, &native)
        };
        let exchanges = f64::from(self.exchanges);
        let exchange = figure("time per exchange", Unit::Nanoseconds, &|round| {
            1e9 * round.time.as_secs_f64() / exchanges
        });
        let seconds = |round: &Round| round.time.as_secs_f64();
        [
            Figure { target: self.target, ..exchange },
            figure("user time", Unit::Milliseconds, &|round| 1e3 * round.used.user),
            figure("system time", Unit::Milliseconds, &|round| 1e3 * round.used.system),
            figure("total time", Unit::Milliseconds, &|round| 1e3 * seconds(round)),
            figure("cpu", Unit::Percent, &|round| {
                100.0 * (round.used.user + round.used.system) / seconds(round)
            }),
        ]
    }
}

//! A request from an app to an extension and back, beside an echo of the text.

use anyhow::{Context, Result};

use super::{
    NAME,
    server::{Server, numbers},
};
use crate::{
    figure::{Figure, Unit},
    scenarios::{Bench, calls::SIZES, device::Device, progress},
    statistics::microseconds,
};

/// The targets, over the baseline.
const PROCESSOR: f64 = 1.6;
const MEDIAN: f64 = 1.5;

/// What a request took in a round, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Processor time of both processes.
    processor: f64,
    /// Of the server alone.
    server: f64,
    p50: f64,
    p99: f64,
}

/// A server and its client.
#[derive(Debug)]
struct Side {
    server: Server,
    caller: Device,
}

#[derive(Debug)]
struct Case {
    name: &'static str,
    size: u32,
    weir: Vec<Round>,
    native: Vec<Round>,
}

pub(super) fn figures(bench: &Bench) -> Result<Vec<Figure>> {
    let mut weir = Side::new(bench, Server::weir(bench)?)?;
    let mut native = Side::new(bench, Server::native(bench)?)?;
    let mut cases = SIZES.map(|(name, size)| Case { name, size, weir: Vec::new(), native: Vec::new() });
    let number = bench.scale.pick(20_000, 5000, 100);
    let rounds = bench.scale.pick(7, 3, 1);
    for round in 0..rounds {
        progress("requests", round, rounds);
        for case in &mut cases {
            case.weir.push(weir.round(number, case.size).with_context(|| case.name)?);
            case.native
                .push(native.round(number, case.size).with_context(|| format!("{}, native", case.name))?);
        }
    }
    Ok(cases.iter().flat_map(Case::figures).collect())
}

impl Side {
    fn new(bench: &Bench, server: Server) -> Result<Self> {
        Ok(Self { caller: server.client(bench, "call", &[])?, server })
    }

    fn round(&mut self, number: u32, size: u32) -> Result<Round> {
        let before = self.server.used()?;
        let answer = self.caller.ask(format_args!("{number} {size}"))?;
        let server = microseconds(self.server.used()? - before);
        let [_, caller, p50, p99] = *numbers(&answer)? else {
            anyhow::bail!("the caller does not answer with four numbers")
        };
        let [caller, p50, p99] =
            [caller, p50, p99].map(|part| microseconds(std::time::Duration::from_nanos(part)));
        let number = f64::from(number);
        Ok(Round { processor: (server + caller) / number, server: server / number, p50, p99 })
    }
}

impl Case {
    fn figures(&self) -> [Figure; 4] {
        let figure = |metric, of: fn(&Round) -> f64| {
            let [weir, native] =
                [&self.weir, &self.native].map(|rounds| rounds.iter().map(of).collect::<Vec<_>>());
            Figure::of_rounds(NAME, self.name, metric, Unit::Microseconds, &weir)
                .beside_rounds(&weir, &native)
        };
        [
            figure("cpu per request", |round| round.processor).at_most(PROCESSOR),
            figure("cpu per request, server", |round| round.server),
            figure("p50", |round| round.p50).at_most(MEDIAN),
            figure("p99", |round| round.p99),
        ]
    }
}

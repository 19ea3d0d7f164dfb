//! From a program outside Main to an extension and back over the peer socket, from an extension to such a program, and
//! programs that wait. `docs/benchmarks.md` explains the figures.

mod caller;
mod idle;
mod native;
mod sidecar;
mod weir;

use anyhow::{Context, Result};
use rustix::process::getuid;

use self::{caller::Caller, native::Native, sidecar::Sidecar, weir::Weir};
use super::{Bench, Scenario, calls::SIZES, progress};
use crate::figure::{Figure, Unit};

const NAME: &str = "peers";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "programs outside Main call an extension, serve it, and wait", run };

/// The target for a request that is under way alone, over the baseline: processor time and median.
const TARGET: f64 = 1.5;

/// Concurrent requests in the pipelined case.
const PIPELINED: u32 = 64;

/// Bytes of each request in the pipelined case.
const PIPELINED_SIZE: u32 = 1024;

/// The calling program.
const APP: &str = "app:bench";

/// The serving program, and its contract.
const SIDECAR: (&str, &str) = ("sidecar:bench", "sidecar@1");

/// Requests that one side makes, one after the other unless more are under way.
#[derive(Clone, Copy, Debug)]
struct Requests {
    number: u32,
    /// Bytes of a payload, at least four.
    size: u32,
    at_once: u32,
}

/// What one request took in a round, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Processor time of all processes.
    processor: f64,
    time: f64,
    /// None where the caller does not take the time of each.
    latency: Option<Latency>,
}

#[derive(Clone, Copy, Debug)]
struct Latency {
    p50: f64,
    p99: f64,
}

/// The requests of a case, and rounds of both sides.
#[derive(Debug)]
struct Case {
    name: String,
    way: Way,
    requests: Requests,
    weir: Vec<Round>,
    native: Vec<Round>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A program calls, one request after the other.
    One,
    /// A program calls, with many requests under way.
    Pipelined,
    /// A program is called.
    ToSidecar,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let weir = Weir::start(bench, &dir.path().join("main.sock"))?;
    let native = Native::start(&dir.path().join("native.sock"))?;
    let mut weir_caller = Caller::start(bench, weir.socket())?;
    let mut native_caller = Caller::start(bench, native.socket())?;
    let mut weir_sidecar = Sidecar::start(bench, weir.socket())?;
    let accepting = native.accept(&dir.path().join("sidecar.sock"))?;
    let mut native_sidecar = Sidecar::start(bench, accepting.socket())?;
    let mut served = accepting.served()?;
    let mut cases = cases(bench.scale.pick(30_000, 10_000, 200));
    let rounds = bench.scale.pick(7, 3, 1);
    for round in 0..rounds {
        progress("requests", round, rounds);
        for case in &mut cases {
            let requests = case.requests;
            let (beside, baseline) = match case.way {
                Way::One | Way::Pipelined => (weir_caller.round(requests), native_caller.round(requests)),
                Way::ToSidecar => (
                    weir_sidecar.round(requests, || weir.call_sidecar(requests)),
                    native_sidecar.round(requests, || native.call_sidecar(&mut served, requests)),
                ),
            };
            case.weir.push(beside.with_context(|| case.name.clone())?);
            case.native.push(baseline.with_context(|| format!("{}, native", case.name))?);
        }
    }
    let mut figures: Vec<_> = cases.iter().flat_map(Case::figures).collect();
    figures.extend(idle::figures(bench)?);
    Ok(figures)
}

fn cases(number: u32) -> Vec<Case> {
    let case = |name: &str, way, size, at_once| Case {
        name: name.to_owned(),
        way,
        // As many for each of those at once.
        requests: Requests { number: number / at_once * at_once, size, at_once },
        weir: Vec::new(),
        native: Vec::new(),
    };
    let mut cases: Vec<_> = SIZES.iter().map(|&(name, size)| case(name, Way::One, size, 1)).collect();
    let name = format!("1 KiB, {PIPELINED} under way");
    cases.push(case(&name, Way::Pipelined, PIPELINED_SIZE, PIPELINED));
    cases.extend(
        SIZES.iter().map(|&(name, size)| case(&format!("{name}, to a sidecar"), Way::ToSidecar, size, 1)),
    );
    cases
}

impl Case {
    fn figures(&self) -> Vec<Figure> {
        let figure = |metric, of: &dyn Fn(&Round) -> Option<f64>| {
            let [weir, native] =
                [&self.weir, &self.native].map(|rounds| rounds.iter().filter_map(of).collect::<Vec<_>>());
            Figure::of_rounds(NAME, &self.name, metric, Unit::Microseconds, &weir)
                .beside_rounds(&weir, &native)
        };
        let processor = figure("cpu per request", &|round| Some(round.processor));
        match self.way {
            Way::One => vec![
                processor.at_most(TARGET),
                figure("p50", &|round| round.latency.map(|latency| latency.p50)).at_most(TARGET),
                figure("p99", &|round| round.latency.map(|latency| latency.p99)),
            ],
            Way::Pipelined | Way::ToSidecar => {
                vec![processor, figure("time per request", &|round| Some(round.time))]
            }
        }
    }
}

/// The name proves nothing: the user of this process does.
fn uid() -> u32 {
    getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Met;

    #[test]
    fn a_request_alone_has_targets_for_its_processor_time_and_its_median() {
        let [mut alone, .., mut pipelined, _, _, mut to_sidecar] = <[Case; 7]>::try_from(cases(64)).unwrap();
        let round = |factor: f64| Round {
            processor: 10.0 * factor,
            time: 30.0 * factor,
            latency: Some(Latency { p50: 20.0 * factor, p99: 40.0 }),
        };
        for case in [&mut alone, &mut pipelined, &mut to_sidecar] {
            case.weir = vec![round(2.0); 3];
            case.native = vec![round(1.0); 3];
        }
        let of = |case: &Case| {
            let figures = case.figures();
            figures
                .iter()
                .map(|figure| (figure.metric.clone(), figure.ratio, figure.met()))
                .collect::<Vec<_>>()
        };
        let figure = |metric: &str, ratio, met| (metric.to_owned(), Some(ratio), met);
        assert_eq!(
            of(&alone),
            [
                figure("cpu per request", 2.0, Some(Met::No)),
                figure("p50", 2.0, Some(Met::No)),
                figure("p99", 1.0, None)
            ]
        );
        for case in [&pipelined, &to_sidecar] {
            assert_eq!(
                of(case),
                [figure("cpu per request", 2.0, None), figure("time per request", 2.0, None)],
                "{}",
                case.name
            );
        }
    }
}

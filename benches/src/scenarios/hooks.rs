//! The same three hooks for many nodes: from a plain loop, from async code, and as processes.
//!
//! What each figure means stands in `docs/benchmarks.md`.

mod empty;
mod entries;
mod processes;
mod site;

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use self::{
    empty::Empty,
    entries::{Async, Blocking},
    processes::Processes,
    site::Site,
};
use super::{Bench, Scenario, client::wait_until, progress};
use crate::{
    figure::{Figure, Unit},
    scale::Scale,
    statistics::{median, microseconds},
};

const NAME: &str = "hooks";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "three hooks for each of many nodes", run };

/// The hooks, in the order in which they run.
const HOOKS: [&str; 3] = ["10-create-root-dir", "20-touch-file", "30-echo-hello"];

/// At least so many times as fast as processes.
const TIMES_AS_FAST: f64 = 20.0;

/// The blocking entry may take so many times what the async one takes.
const ALLOWED_OVER_ASYNC: f64 = 1.05;

/// Time after which Weir keeps what it has loaded of a file: one that is younger could change without a trace.
const SETTLED: Duration = Duration::from_secs(5);

/// Who runs the hooks, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Blocking,
    AsyncTask,
    AsyncOnWorker,
    Processes,
    Scripts,
}

impl Way {
    const ALL: [Self; 5] =
        [Self::Blocking, Self::AsyncTask, Self::AsyncOnWorker, Self::Processes, Self::Scripts];

    /// Nodes of one round. Processes take as much longer, and their time is one of a node, too.
    fn nodes(self, scale: Scale) -> u32 {
        match self {
            Self::Blocking | Self::AsyncTask | Self::AsyncOnWorker => scale.pick(5000, 200, 5),
            Self::Processes | Self::Scripts => scale.pick(500, 50, 5),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking => "blocking",
            Self::AsyncTask => "async, from a task elsewhere",
            Self::AsyncOnWorker => "async, on the worker",
            Self::Processes => "processes",
            Self::Scripts => "shell scripts",
        })
    }
}

/// How the rounds follow each other.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// One round of each way, and again.
    Alternating,
    /// All rounds of one way, then all of the next.
    InSequence,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alternating => "alternating",
            Self::InSequence => "in sequence",
        })
    }
}

/// Every way, at the same site.
#[derive(Debug)]
struct Ways {
    site: Site,
    blocking: Blocking,
    asynchronous: Async,
    processes: Processes,
    scripts: Processes,
}

impl Ways {
    fn start(bench: &Bench) -> Result<Self> {
        // Before anything runs: a program that is being written cannot be started.
        let site = Site::new(&bench.guests)?;
        Ok(Self {
            blocking: Blocking::start(&site)?,
            asynchronous: Async::start(&site)?,
            processes: Processes::new(HOOKS.map(|hook| bench.guests.native(hook)), site.files()),
            scripts: Processes::new(HOOKS.map(|hook| site.script(hook)), site.files()),
            site,
        })
    }

    /// One round: microseconds per node.
    fn round(&self, way: Way, nodes: u32) -> Result<f64> {
        self.site.clear()?;
        let time = match way {
            Way::Blocking => self.blocking.round(nodes),
            Way::AsyncTask => self.asynchronous.round_in_a_task(nodes),
            Way::AsyncOnWorker => self.asynchronous.round_on_the_worker(nodes),
            Way::Processes => self.processes.round(nodes),
            Way::Scripts => self.scripts.round(nodes),
        };
        let time = time.and_then(|time| self.site.check(nodes).map(|()| time));
        Ok(microseconds(time.with_context(|| way.to_string())?) / f64::from(nodes))
    }
}

/// A node's name.
fn node(number: u32) -> String {
    format!("node-{number}")
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let (ways, empty) = (Ways::start(bench)?, Empty::start(bench)?);
    // What is compiled and read from disk once is not what a node takes.
    for way in Way::ALL {
        ways.round(way, 1)?;
    }
    wait_until(Instant::now() + bench.scale.pick(SETTLED, SETTLED, Duration::ZERO));
    for way in Way::ALL {
        ways.round(way, 1)?;
    }
    let rounds = bench.scale.pick(10, 3, 1);
    let mut figures = Vec::new();
    for order in [Order::Alternating, Order::InSequence] {
        figures.extend(compared(order, &measure(&ways, bench.scale, order, rounds)?));
    }
    figures.extend(empty.measure(bench.scale, rounds)?);
    Ok(figures)
}

/// Microseconds per node, the median of the rounds of each way.
fn measure(ways: &Ways, scale: Scale, order: Order, rounds: usize) -> Result<Vec<(Way, f64)>> {
    let mut times = Way::ALL.map(|_| Vec::new());
    match order {
        Order::Alternating => {
            for round in 0..rounds {
                progress(&order.to_string(), round, rounds);
                for (way, times) in Way::ALL.into_iter().zip(&mut times) {
                    times.push(ways.round(way, way.nodes(scale))?);
                }
            }
        }
        Order::InSequence => {
            for (step, (way, times)) in Way::ALL.into_iter().zip(&mut times).enumerate() {
                progress(&order.to_string(), step, Way::ALL.len());
                for _ in 0..rounds {
                    times.push(ways.round(way, way.nodes(scale))?);
                }
            }
        }
    }
    Ok(Way::ALL.into_iter().zip(times.map(median)).collect())
}

fn compared(order: Order, times: &[(Way, f64)]) -> Vec<Figure> {
    let of = |wanted| times.iter().find(|(way, _)| *way == wanted).map_or(f64::NAN, |(_, time)| *time);
    let (blocking, processes) = (of(Way::Blocking), of(Way::Processes));
    let asynchronous = of(Way::AsyncTask).min(of(Way::AsyncOnWorker));
    let mut figures: Vec<_> = times
        .iter()
        .filter(|(way, _)| *way != Way::Processes)
        .map(|(way, time)| {
            let case = format!("{order}, {way}");
            Figure::new(NAME, case, "time per node", Unit::Microseconds, *time).beside(processes)
        })
        .collect();
    let times = |metric, value| Figure::new(NAME, order.to_string(), metric, Unit::Times, value);
    figures.push(times("processes over blocking", processes / blocking).beside(TIMES_AS_FAST));
    figures.push(times("blocking over async", blocking / asynchronous).beside(ALLOWED_OVER_ASYNC));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_is_compared_with_processes_and_with_the_cheaper_async_entry() {
        let times = Way::ALL.into_iter().zip([100.0, 200.0, 80.0, 4000.0, 6000.0]).collect::<Vec<_>>();
        let figures = compared(Order::Alternating, &times);
        let ratio = |metric| figures.iter().find(|figure| figure.metric == metric).map(|it| it.value);
        assert_eq!(ratio("processes over blocking"), Some(40.0));
        assert_eq!(ratio("blocking over async"), Some(1.25));
        let baselines: Vec<_> = figures.iter().take(4).map(|figure| figure.baseline).collect();
        assert_eq!(baselines, [Some(4000.0); 4]);
    }
}

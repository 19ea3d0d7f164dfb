//! The same three hooks for many nodes: from a plain loop, from async code, and as processes.
//! `docs/benchmarks.md` explains the figures.

mod runners;
mod site;

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use self::{
    runners::{Async, Blocking, Processes},
    site::Site,
};
use super::{Bench, Scale, Scenario, device::wait_until, one_hook::SETTLED, progress};
use crate::figure::{Figure, Unit, median, microseconds};

const NAME: &str = "hooks";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "three hooks for each of many nodes", run };

const HOOKS: [&str; 3] = ["10-create-root-dir", "20-touch-file", "30-echo-hello"];

/// The target of the blocking entry, over processes.
const ALLOWED_OVER_PROCESSES: f64 = 1.0 / 20.0;

/// The target of the blocking entry, over the async one.
const ALLOWED_OVER_ASYNC: f64 = 1.05;

/// The runner of the hooks.
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

    /// Nodes of one round. Processes need fewer: they take longer, and their time is per node, too.
    fn nodes(self, scale: Scale) -> u32 {
        match self {
            Self::Blocking | Self::AsyncTask | Self::AsyncOnWorker => scale.pick(5000, 500, 5),
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

#[derive(Clone, Copy, Debug)]
enum Order {
    Alternating,
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
        // The scripts are written before anything runs: a program that is being written cannot be started.
        let site = Site::new(&bench.guests)?;
        Ok(Self {
            blocking: Blocking::start(&site)?,
            asynchronous: Async::start(&site)?,
            processes: Processes::new(HOOKS.map(|hook| bench.guests.native(hook)), site.files()),
            scripts: Processes::new(HOOKS.map(|hook| site.script(hook)), site.files()),
            site,
        })
    }

    /// Runs one round. Returns the microseconds per node.
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

fn node(number: u32) -> String {
    format!("node-{number}")
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let ways = Ways::start(bench)?;
    // Compiling and first reads from disk are not part of a node.
    for way in Way::ALL {
        ways.round(way, 1)?;
    }
    wait_until(Instant::now() + bench.scale.pick(SETTLED, SETTLED, Duration::ZERO));
    for way in Way::ALL {
        ways.round(way, 1)?;
    }
    let rounds = bench.scale.pick(5, 3, 1);
    let mut figures = Vec::new();
    for order in [Order::Alternating, Order::InSequence] {
        figures.extend(compared(order, &measure(&ways, bench.scale, order, rounds)?));
    }
    Ok(figures)
}

fn measure(ways: &Ways, scale: Scale, order: Order, rounds: usize) -> Result<Vec<(Way, Vec<f64>)>> {
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
    Ok(Way::ALL.into_iter().zip(times).collect())
}

fn compared(order: Order, times: &[(Way, Vec<f64>)]) -> Vec<Figure> {
    let of = |wanted| times.iter().find(|(way, _)| *way == wanted).map_or(&[][..], |(_, times)| times);
    let figure = |way: Way, metric, beside| {
        let case = format!("{order}, {way}");
        Figure::of_rounds(NAME, case, metric, Unit::Microseconds, of(way)).beside_rounds(of(way), of(beside))
    };
    let per_node = |way| figure(way, "time per node", Way::Processes);
    let cheaper = |one: &Way, other: &Way| median(of(*one).to_vec()).total_cmp(&median(of(*other).to_vec()));
    let asynchronous = std::cmp::min_by(Way::AsyncTask, Way::AsyncOnWorker, cheaper);
    vec![
        per_node(Way::Blocking).at_most(ALLOWED_OVER_PROCESSES),
        figure(Way::Blocking, "time per node, beside async", asynchronous).at_most(ALLOWED_OVER_ASYNC),
        per_node(Way::AsyncTask),
        per_node(Way::AsyncOnWorker),
        per_node(Way::Scripts),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Met;

    #[test]
    fn blocking_is_compared_with_processes_and_with_the_cheaper_async_entry() {
        let times = [100.0, 200.0, 80.0, 4000.0, 6000.0].map(|time| vec![time; 3]);
        let figures = compared(Order::Alternating, &Way::ALL.into_iter().zip(times).collect::<Vec<_>>());
        let ratios: Vec<_> = figures.iter().map(|figure| figure.ratio.unwrap()).collect();
        assert_eq!(ratios, [0.025, 1.25, 0.05, 0.02, 1.5]);
        let met: Vec<_> = figures.iter().filter_map(Figure::met).collect();
        assert_eq!(met, [Met::Yes, Met::No]);
    }
}

//! How long after its stop deadline an extension is gone.

mod native;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir_host::{Builder, Config, Main, MainConfig, Service, State, blocking};

use self::native::NativeTask;
use super::{Bench, Scenario, isolation::pieces, progress};
use crate::{
    figure::{Figure, Unit},
    statistics::{Sorted, Summary, microseconds},
};

const NAME: &str = "kill";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "from the stop deadline of an extension to its end", run };

/// The stop deadline of every victim: the least that there is.
const STOP_TIMEOUT: Duration = Duration::from_millis(1);

/// Within this, one that is asleep must be gone.
const ASLEEP_BOUND: Duration = Duration::from_millis(100);

/// Who is killed: ids that are kinds, too.
const VICTIMS: [Victim; 5] = [
    Victim { kind: "spin", runs: true, obeys: false },
    Victim { kind: "fill", runs: true, obeys: false },
    Victim { kind: "asleep-in-call", runs: false, obeys: false },
    Victim { kind: "asleep-in-poll", runs: false, obeys: false },
    Victim { kind: "asleep-in-receive", runs: false, obeys: true },
];

/// Spinning neighbours.
const NEIGHBOURS: [&str; 4] = ["neighbour-1", "neighbour-2", "neighbour-3", "neighbour-4"];

#[derive(Clone, Copy, Debug)]
struct Victim {
    kind: &'static str,
    /// Or is asleep.
    runs: bool,
    /// Ends as soon as it is told to stop, before the deadline.
    obeys: bool,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    progress("a slice and a stall alone", 0, 1);
    let pieces = pieces::measure(bench)?;
    let (rounds, kills) = (bench.scale.pick(10, 2, 1), bench.scale.pick(1000, 100, 3));
    let native_task = NativeTask::start(STOP_TIMEOUT)?;
    let main = blocking::Main::start(main(bench)?)?;
    let control = main.control();
    let mut figures = Vec::new();
    for (surroundings, neighbours) in [("alone", &[][..]), ("beside 4", &NEIGHBOURS)] {
        for id in neighbours {
            control.start(id)?;
        }
        let mut native = Vec::new();
        let mut killed = VICTIMS.map(|_| Vec::new());
        for round in 0..rounds {
            progress(surroundings, round, rounds);
            native.push(Sorted::new(
                (0..kills).map(|_| native_task.stop()).collect::<Result<_>>().context("the native task")?,
            ));
            for (victim, killed) in VICTIMS.iter().zip(&mut killed) {
                let times = (0..kills).map(|_| kill(&control, *victim)).collect::<Result<_>>();
                killed.push(Sorted::new(times.with_context(|| format!("killing `{}`", victim.kind))?));
            }
        }
        let native = Summary::of(&native);
        for (victim, killed) in VICTIMS.iter().zip(killed) {
            let bound = if victim.runs { pieces.slice() + pieces.stall } else { microseconds(ASLEEP_BOUND) };
            figures.extend(latencies(&format!("{} {surroundings}", victim.kind), native, &killed, bound));
        }
    }
    Ok(figures)
}

/// Starts it and stops it; the time from its deadline to its end.
fn kill(control: &blocking::Control, victim: Victim) -> Result<Duration> {
    control.start(victim.kind)?;
    let start = Instant::now();
    control.stop(victim.kind)?;
    let stopped = start.elapsed();
    let status = control.as_async().status(victim.kind)?;
    ensure!(status.state == State::Stopped, "it is {:?}", status.state);
    if victim.obeys {
        ensure!(status.failures.is_empty(), "it failed: {:?}", status.failures);
        return Ok(stopped);
    }
    let overdue = status.failures.last().is_some_and(|failure| failure.cause.contains("`stop-timeout`"));
    ensure!(overdue, "it ended by itself: {:?}", status.failures.last());
    Ok(stopped.saturating_sub(STOP_TIMEOUT))
}

fn latencies(case: &str, native: Summary, killed: &[Sorted], bound: f64) -> [Figure; 5] {
    let figure = |metric, value| Figure::new(NAME, case, metric, Unit::Microseconds, value);
    let killed = Summary::of(killed);
    [
        figure("p50", killed.p50).beside(native.p50),
        figure("p99", killed.p99).beside(native.p99),
        figure("p99 spread", killed.p99_spread).beside(native.p99_spread),
        figure("max", killed.max).beside(native.max),
        figure("p99 less the timer's", killed.p99 - native.p99).beside(bound),
    ]
}

/// Main with the victims and neighbours at rest.
fn main(bench: &Bench) -> Result<Builder> {
    let mut extensions = Vec::new();
    for Victim { kind, .. } in VICTIMS {
        extensions.push(bench.guests.of_kind(kind, kind)?);
    }
    for id in NEIGHBOURS {
        extensions.push(bench.guests.of_kind(id, "spin")?);
    }
    for extension in &mut extensions {
        extension.wants = vec!["gate@1".parse()?];
        extension.limits.stop_timeout = STOP_TIMEOUT;
    }
    // Holds the compiled program for the others.
    let mut holder = bench.guests.of_kind("holder", "asleep-in-poll")?;
    holder.autostart = true;
    extensions.push(holder);
    let gate = Service::new("gate@1".parse()?).on("pass".parse()?, |_| std::future::pending());
    Ok(Main::builder(Config::new(MainConfig::default(), extensions)).serve(gate))
}

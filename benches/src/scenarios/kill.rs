//! The time from an extension's stop deadline to its end, by the worker's clock.

mod timers;

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use weir_host::{Builder, Control, Service, blocking::wait, control::ExtensionState};

use self::timers::Timers;
use super::{Bench, Scenario, device::wait_until, embedder::builder, isolation::Pieces, progress};
use crate::figure::{Figure, Sorted, Unit, microseconds};

const NAME: &str = "kill";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "from the stop deadline of an extension to its end", run };

/// The stop deadline of every victim: the shortest.
const STOP_TIMEOUT: Duration = Duration::from_millis(1);

/// A sleeping extension must be gone within this.
const ASLEEP_BOUND: Duration = Duration::from_millis(100);

/// The killed extensions: ids that are kinds, too.
const VICTIMS: [Victim; 5] = [
    Victim { kind: "spin", runs: true, obeys: false },
    Victim { kind: "fill", runs: true, obeys: false },
    Victim { kind: "asleep-in-call", runs: false, obeys: false },
    Victim { kind: "asleep-in-poll", runs: false, obeys: false },
    Victim { kind: "asleep-in-receive", runs: false, obeys: true },
];

const NEIGHBOURS: [&str; 4] = ["neighbour-1", "neighbour-2", "neighbour-3", "neighbour-4"];

#[derive(Clone, Copy, Debug)]
struct Victim {
    kind: &'static str,
    /// Whether the victim computes. Otherwise it sleeps.
    runs: bool,
    /// Whether the victim ends as soon as it is told to stop, before the deadline.
    obeys: bool,
}

#[derive(Clone, Copy, Debug)]
struct Kill {
    /// From the deadline to the firing of its timer.
    late: Duration,
    /// From the firing, or from the stop of a victim that obeys, to when it would not run again.
    stopped: Duration,
    /// From the firing, or from the stop of a victim that obeys, to the release of all its resources.
    gone: Duration,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    progress("a slice and a stall alone", 0, 1);
    let pieces = Pieces::measure(bench)?;
    let (rounds, kills) = (bench.scale.pick(10, 2, 1), bench.scale.pick(200, 100, 3));
    let (main, timers) = Timers::start(main(bench)?)?;
    let control = main.control();
    wait(control.start("holder"))?;
    let mut figures = Vec::new();
    for (surroundings, neighbours) in [("alone", &[][..]), ("beside 4", &NEIGHBOURS)] {
        for id in neighbours {
            wait(control.start(id))?;
        }
        // Victims are killed in turns, so that disturbances of the machine affect all of them.
        let mut killed = VICTIMS.map(|_| Vec::new());
        for round in 0..rounds {
            progress(surroundings, round, rounds);
            for (victim, killed) in VICTIMS.iter().zip(&mut killed) {
                for _ in 0..kills {
                    let kill = kill(control, &timers, *victim);
                    killed.push(kill.with_context(|| format!("killing `{}`", victim.kind))?);
                }
            }
        }
        for (victim, killed) in VICTIMS.iter().zip(killed) {
            let bound = if victim.runs { pieces.slice() + pieces.stall } else { microseconds(ASLEEP_BOUND) };
            figures.extend(latencies(&format!("{} {surroundings}", victim.kind), *victim, &killed, bound));
        }
    }
    Ok(figures)
}

/// Starts a victim and stops it.
///
/// The worker sees the stop some microseconds later. So the deadline ends in the same tick as a timer that
/// counts from now, and both fire together. If the worker is held up until the next tick, the figure is too
/// great, never too small.
fn kill(control: &Control, timers: &Timers, victim: Victim) -> Result<Kill> {
    wait(control.start(victim.kind))?;
    // This thread may be held up until it is too late for the timer, so it tries again.
    let set = (0..100).find_map(|_| {
        wait_until(timers.early_in_a_tick());
        let (told, told_at) = (Instant::now(), SystemTime::now());
        Some((told_at, timers.at(told + STOP_TIMEOUT).ok()?))
    });
    let (told_at, timer) = set.context("no timer could be set in time")?;
    wait(control.stop(victim.kind))?;
    let status = control.status(victim.kind)?;
    ensure!(status.state == ExtensionState::Stopped, "it is {:?}", status.state);
    if victim.obeys {
        ensure!(status.failures.is_empty(), "it failed: {:?}", status.failures);
        // Of a victim that ends by itself, only the end is recorded.
        let gone = status.since.duration_since(told_at)?;
        return Ok(Kill { late: Duration::ZERO, stopped: gone, gone });
    }
    let failure = status.failures.last().context("it ended by itself")?;
    ensure!(failure.cause.contains("`stop-timeout`"), "it ended by itself: {failure:?}");
    let fired = timer.fired().context("it ended before its deadline")?;
    Ok(Kill {
        late: fired.duration_since(told_at + STOP_TIMEOUT)?,
        stopped: failure.time.duration_since(fired)?,
        gone: status.since.duration_since(fired)?,
    })
}

/// Figures of all kills together, not by round.
fn latencies(case: &str, victim: Victim, killed: &[Kill], bound: f64) -> Vec<Figure> {
    let figure = |metric, value| Figure::new(NAME, case, metric, Unit::Microseconds, value);
    let sorted = |time: fn(&Kill) -> Duration| Sorted::new(killed.iter().map(time).collect());
    let stopped = sorted(|kill| kill.stopped);
    let mut figures = vec![
        figure("p50", stopped.percentile(50)).beside(bound),
        figure("p99", stopped.percentile(99)).beside(bound),
        figure("max", stopped.percentile(100)).beside(bound),
    ];
    if !victim.obeys {
        figures.push(figure("p99 until gone", sorted(|kill| kill.gone).percentile(99)));
        figures.push(figure("p99 of the timer", sorted(|kill| kill.late).percentile(99)));
    }
    figures
}

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
    extensions.push(bench.guests.of_kind("holder", "asleep-in-poll")?);
    let gate = Service::new("gate@1".parse()?).on("pass".parse()?, |_| std::future::pending());
    Ok(builder(extensions).serve(gate))
}

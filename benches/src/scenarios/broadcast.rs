//! One topic and 1024 subscribers, beside 1024 native tasks. `docs/benchmarks.md` explains the figures.

mod native;
mod round;
mod weir;

use std::time::Duration;

use anyhow::Result;

use self::{
    native::{Broadcast, Copies},
    round::{Packets, Round, Side, measure},
    weir::Weir,
};
use super::{Bench, Scenario, progress};
use crate::{
    figure::{Figure, Unit},
    usage,
};

const NAME: &str = "broadcast";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "one topic with 1024 subscribers, beside as many native tasks", run };

/// Bytes of a packet and milliseconds between two (800 kbit/s each), and the target: processor time over the
/// baseline's.
const RATES: [(u32, u32, Option<f64>); 5] = [
    (20_000, 200, Some(9.0)),
    (10_000, 100, None),
    (5_000, 50, None),
    (2_000, 20, None),
    (1_000, 10, Some(5.0)),
];

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let subscribers = bench.scale.pick(1024, 1024, 16);
    progress("starting", 0, 1);
    let mut weir = Weir::start(bench, subscribers, false)?;
    let mut copies = Copies::start(subscribers)?;
    let mut broadcast = Broadcast::start(subscribers)?;
    let mut figures = Vec::new();
    for (bytes, interval, allowed) in RATES {
        let packets = Packets { count: of(bench, interval), bytes, interval: Some(milliseconds(interval)) };
        let what = format!("{} KB every {interval} ms", bytes / 1000);
        let sides: [&mut dyn Side; 3] = [&mut copies, &mut weir, &mut broadcast];
        let [copies, weir, broadcast] = in_turns(bench, sides, packets, &what)?;
        figures.extend(paced(&what, &weir, &copies, allowed));
        figures.extend(paced(&format!("tokio::sync::broadcast, {what}"), &broadcast, &copies, None));
    }
    for (bytes, ..) in RATES {
        // The same number of bytes at each size: natively each subscriber gets a copy.
        let count = bench.scale.pick(500_000, 200_000, 20_000) / bytes;
        let what = format!("{} KB without pause", bytes / 1000);
        let sides: [&mut dyn Side; 2] = [&mut copies, &mut weir];
        let [copies, weir] = in_turns(bench, sides, Packets { count, bytes, interval: None }, &what)?;
        figures.extend(unpaced(&what, &weir, &copies));
    }
    figures.extend(beside_stalled(bench, &mut weir, subscribers)?);
    Ok(figures)
}

/// Two Mains with equally many subscribers. In the second, one subscriber never receives.
fn beside_stalled(bench: &Bench, weir: &mut Weir, subscribers: u32) -> Result<Vec<Figure>> {
    let mut with_stalled = Weir::start(bench, subscribers, true)?;
    let (bytes, interval) = (1_000, 10);
    let packets = Packets { count: of(bench, interval), bytes, interval: Some(milliseconds(interval)) };
    // A first round, so that both start with everything loaded.
    for side in [&mut *weir, &mut with_stalled] {
        measure(side, packets)?;
    }
    let before = usage::resident()?;
    let sides: [&mut dyn Side; 2] = [weir, &mut with_stalled];
    let [without, beside] = in_turns(bench, sides, packets, "one stalled subscriber")?;
    let after = usage::resident()?;
    with_stalled.ensure_shed()?;
    let case = "one stalled subscriber";
    let mut figures = latencies(case, &beside, &without).to_vec();
    figures.push(Figure::new(NAME, case, "resident", Unit::Mebibytes, after).beside(before));
    Ok(figures)
}

/// Measures the sides in turns, in several rounds.
fn in_turns<const N: usize>(
    bench: &Bench,
    mut sides: [&mut dyn Side; N],
    packets: Packets,
    what: &str,
) -> Result<[Vec<Round>; N]> {
    let mut measured = [const { Vec::new() }; N];
    let rounds = bench.scale.pick(5, 2, 1);
    for round in 0..rounds {
        progress(what, round, rounds);
        for (side, measured) in sides.iter_mut().zip(&mut measured) {
            measured.push(measure(*side, packets)?);
        }
    }
    Ok(measured)
}

/// Packets of a round: for 1.2 seconds, in a quick run for 0.6.
fn of(bench: &Bench, interval: u32) -> u32 {
    bench.scale.pick(1200 / interval, 600 / interval, 2)
}

fn paced(case: &str, rounds: &[Round], baseline: &[Round], allowed: Option<f64>) -> Vec<Figure> {
    let mut cpu = figure(case, "cpu", Unit::Percent, rounds, baseline, |round| {
        100.0 * round.cpu.div_duration_f64(round.span)
    });
    cpu.target = allowed;
    let mut figures = vec![cpu];
    figures.extend(latencies(case, rounds, baseline));
    figures
}

fn unpaced(case: &str, rounds: &[Round], baseline: &[Round]) -> Vec<Figure> {
    let figure = |metric, unit, of: fn(&Round) -> f64| figure(case, metric, unit, rounds, baseline, of);
    vec![
        figure("events", Unit::PerSecond, |round| round.events() / round.span.as_secs_f64()),
        figure("deliveries", Unit::PerSecond, |round| round.deliveries() / round.span.as_secs_f64()),
        figure("cpu per delivery", Unit::Microseconds, |round| {
            1e6 * round.cpu.as_secs_f64() / round.deliveries()
        }),
    ]
}

/// From the publishing of a packet to its last delivery.
fn latencies(case: &str, rounds: &[Round], baseline: &[Round]) -> [Figure; 2] {
    let figure =
        |metric, of: fn(&Round) -> f64| figure(case, metric, Unit::Microseconds, rounds, baseline, of);
    [
        figure("p50 of the last delivery", |round| round.last.percentile(50)),
        figure("p99 of the last delivery", |round| round.last.percentile(99)),
    ]
}

fn figure(
    case: &str,
    metric: &str,
    unit: Unit,
    rounds: &[Round],
    baseline: &[Round],
    of: impl Fn(&Round) -> f64,
) -> Figure {
    let [rounds, baseline] = [rounds, baseline].map(|rounds| rounds.iter().map(&of).collect::<Vec<_>>());
    Figure::of_rounds(NAME, case, metric, unit, &rounds).beside_rounds(&rounds, &baseline)
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}

//! One topic and 1024 subscribers, beside 1024 native tasks. `docs/benchmarks.md` explains the figures.

mod sides;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use self::sides::{Broadcast, Copies, Weir};
use super::{
    Bench, Scenario,
    device::{at_rest, wait_until},
    in_turns, progress,
};
use crate::{
    figure::{Figure, Sorted, Unit},
    process,
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
        let [copies, weir, broadcast] = measured(bench, sides, packets, &what)?;
        figures.extend(paced(&what, &weir, &copies, allowed));
        figures.extend(paced(&format!("tokio::sync::broadcast, {what}"), &broadcast, &copies, None));
    }
    for (bytes, ..) in RATES {
        // A round has the same number of bytes at each size, since natively each subscriber gets a copy.
        let count = bench.scale.pick(500_000, 200_000, 20_000) / bytes;
        let what = format!("{} KB without pause", bytes / 1000);
        let sides: [&mut dyn Side; 2] = [&mut copies, &mut weir];
        let [copies, weir] = measured(bench, sides, Packets { count, bytes, interval: None }, &what)?;
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
    let before = process::resident()?;
    let sides: [&mut dyn Side; 2] = [weir, &mut with_stalled];
    let [without, beside] = measured(bench, sides, packets, "one stalled subscriber")?;
    let after = process::resident()?;
    with_stalled.ensure_shed()?;
    let case = "one stalled subscriber";
    let mut figures = latencies(case, &beside, &without).to_vec();
    figures.push(Figure::new(NAME, case, "resident", Unit::Mebibytes, after).beside(before));
    Ok(figures)
}

fn measured<const N: usize>(
    bench: &Bench,
    sides: [&mut dyn Side; N],
    packets: Packets,
    what: &str,
) -> Result<[Vec<Round>; N]> {
    in_turns(what, bench.scale.pick(5, 2, 1), sides.map(|side| move || measure(side, packets)))
}

/// Packets of a round: for 1.2 seconds, in a quick run for 0.6, and two in a smoke run.
fn of(bench: &Bench, interval: u32) -> u32 {
    bench.scale.pick(1200 / interval, 600 / interval, 2)
}

fn paced(case: &str, rounds: &[Round], baseline: &[Round], allowed: Option<f64>) -> Vec<Figure> {
    let cpu = |round: &Round| 100.0 * round.cpu.div_duration_f64(round.span);
    let cpu = Figure::compared((NAME, case), "cpu", Unit::Percent, (rounds, baseline), cpu);
    [cpu.at_most(allowed)].into_iter().chain(latencies(case, rounds, baseline)).collect()
}

fn unpaced(case: &str, rounds: &[Round], baseline: &[Round]) -> Vec<Figure> {
    let figure = |metric, unit, of: fn(&Round) -> f64| {
        Figure::compared((NAME, case), metric, unit, (rounds, baseline), of)
    };
    vec![
        figure("events", Unit::PerSecond, |round| f64::from(round.packets) / round.span.as_secs_f64()),
        figure("deliveries", Unit::PerSecond, |round| round.deliveries() / round.span.as_secs_f64()),
        figure("cpu per delivery", Unit::Microseconds, |round| {
            1e6 * round.cpu.as_secs_f64() / round.deliveries()
        }),
    ]
}

/// Figures of the time from the publishing of a packet to its last delivery.
fn latencies(case: &str, rounds: &[Round], baseline: &[Round]) -> [Figure; 2] {
    let figure = |metric, of: fn(&Round) -> f64| {
        Figure::compared((NAME, case), metric, Unit::Microseconds, (rounds, baseline), of)
    };
    [
        figure("p50 of the last delivery", |round| round.last.percentile(50)),
        figure("p99 of the last delivery", |round| round.last.percentile(99)),
    ]
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}

#[derive(Clone, Copy, Debug)]
struct Packets {
    count: u32,
    bytes: u32,
    /// Time between two. None: the next follows at once.
    interval: Option<Duration>,
}

trait Side {
    /// Publishes one packet on this thread. Unless the packets are `paced`, waits until all subscribers have room.
    fn publish(&mut self, packet: Bytes, paced: bool) -> Result<()>;

    /// Processor time of the delivering thread.
    fn used(&self) -> Result<Duration>;

    /// Waits until all subscribers have this many packets. Returns the wait of each packet in microseconds,
    /// by subscriber. Fails unless each got all, whole and in order. Then begins anew.
    fn report(&mut self, packets: u32) -> Result<Vec<Vec<u32>>>;
}

#[derive(Clone, Debug)]
struct Round {
    /// Processor time of the publishing and the delivering thread.
    cpu: Duration,
    /// From the first publishing to the last delivery: at least the sum of all intervals.
    span: Duration,
    /// For each packet, from its publishing to its last delivery.
    last: Sorted,
    packets: u32,
    subscribers: u32,
}

impl Round {
    fn deliveries(&self) -> f64 {
        f64::from(self.packets) * f64::from(self.subscribers)
    }
}

fn measure(side: &mut dyn Side, packets: Packets) -> Result<Round> {
    let Packets { count, bytes, interval } = packets;
    let (used, own) = (side.used()?, process::of_this_thread());
    let start = Instant::now();
    let mut last_at = start;
    for number in 0..count {
        if let Some(interval) = interval {
            wait_until(start + interval * number);
        }
        let packet = packet(number, bytes)?;
        last_at = Instant::now();
        side.publish(packet, interval.is_some())?;
    }
    let own = process::of_this_thread() - own;
    let used = at_rest(|| side.used())?.saturating_sub(used);
    let waits = side.report(count)?;
    let last = last_deliveries(&waits, count)?;
    let arrived = last_at - start + last.last().copied().context("no packet")?;
    Ok(Round {
        cpu: own + used,
        span: arrived.max(interval.unwrap_or_default() * count),
        last: Sorted::new(last),
        packets: count,
        subscribers: u32::try_from(waits.len())?,
    })
}

/// A packet that begins with its number and its length.
fn packet(number: u32, bytes: u32) -> Result<Bytes> {
    let mut packet = [number.to_le_bytes(), bytes.to_le_bytes()].concat();
    packet.resize(bytes.try_into()?, 0x5a);
    Ok(packet.into())
}

/// The longest wait of each packet.
fn last_deliveries(waits: &[Vec<u32>], packets: u32) -> Result<Vec<Duration>> {
    let mut longest = vec![0; packets.try_into()?];
    for waits in waits {
        ensure!(waits.len() == longest.len(), "{} of {packets} packets came", waits.len());
        for (longest, wait) in longest.iter_mut().zip(waits) {
            *longest = (*longest).max(*wait);
        }
    }
    Ok(longest.into_iter().map(|wait| Duration::from_micros(wait.into())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_delivery_of_a_packet_is_that_to_whoever_waited_longest() {
        let waits = [vec![3, 1], vec![2, 5]];
        assert_eq!(last_deliveries(&waits, 2).unwrap(), [3, 5].map(Duration::from_micros));
        assert!(last_deliveries(&waits, 3).is_err());
    }

    #[test]
    fn a_packet_says_which_it_is_and_how_long() {
        assert_eq!(packet(7, 12).unwrap(), [7, 0, 0, 0, 12, 0, 0, 0, 0x5a, 0x5a, 0x5a, 0x5a][..]);
    }
}

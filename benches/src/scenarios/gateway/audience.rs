//! Packets for many subscribers, also beside a subscriber that does not read.

use std::{thread, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};

use super::{
    NAME,
    server::{Packets, Server, Way},
};
use crate::{
    figure::{Figure, Sorted, Unit},
    scenarios::{Bench, device::Device, idle::MANY, in_turns},
};

/// Bytes of a packet, and milliseconds between two: 800 kbit/s each.
const RATES: [(u32, u32); 5] = [(20_000, 200), (10_000, 100), (5_000, 50), (2_000, 20), (1_000, 10)];

/// The target for the processor time of the server, over the baseline's.
const PROCESSOR: f64 = 1.25;

/// The target for what a subscriber that does not read costs: processor time and last delivery, over those without.
const BESIDE_STALLED: f64 = 1.1;

/// More than all buffers between a publisher and a subscriber that does not read.
const FILLING: Packets = Packets { count: 1000, bytes: 20_000, interval: Duration::ZERO };

/// A server with its subscribers.
#[derive(Debug)]
struct Side {
    server: Server,
    readers: Device,
}

#[derive(Clone, Debug)]
struct Round {
    /// Processor time of the server.
    used: Duration,
    /// From the first packet to the last delivery: at least the sum of all intervals.
    span: Duration,
    /// For each packet, from its publishing to its last delivery.
    last: Sorted,
}

pub(super) fn figures(bench: &Bench) -> Result<Vec<Figure>> {
    let subscribers = bench.scale.pick(MANY, MANY, 16);
    let mut figures = Vec::new();
    for way in [Way::Stream, Way::WebSocket] {
        let mut weir = Side::new(bench, Server::weir(bench)?, way, subscribers)?;
        let mut native = Side::new(bench, Server::native(bench)?, way, subscribers)?;
        for (bytes, interval) in RATES {
            let packets = packets(bench, bytes, interval);
            let case = way.case(&format!("{} KB every {interval} ms", bytes / 1000));
            let [weir, native] = measured(bench, [&mut weir, &mut native], packets, &case)?;
            let [cpu, p50, p99] = compared(&case, &weir, &native);
            figures.extend([cpu.at_most(PROCESSOR), p50, p99]);
        }
        drop((weir, native));
        figures.extend(beside_stalled(bench, way, subscribers)?);
    }
    Ok(figures)
}

/// Two Mains. The second has one more subscriber, which does not read.
fn beside_stalled(bench: &Bench, way: Way, subscribers: u32) -> Result<Vec<Figure>> {
    let case = way.case("one stalled subscriber");
    let mut without = Side::new(bench, Server::weir(bench)?, way, subscribers - 1)?;
    let mut server = Server::weir(bench)?;
    let mut stalled = server.subscriber(bench, "stall", way, &[])?;
    let filling = server.publish(FILLING)?.len();
    server.at_rest()?;
    let mut beside = Side::new(bench, server, way, subscribers - 1)?;
    let packets = packets(bench, 1_000, 10);
    let [with, without] = measured(bench, [&mut beside, &mut without], packets, &case)?;
    let read: usize = stalled.ask("")?.parse()?;
    ensure!(read < filling * usize::try_from(FILLING.bytes)?, "nothing was lost for want of room");
    let [cpu, p50, p99] = compared(&case, &with, &without);
    Ok(vec![cpu.at_most(BESIDE_STALLED), p50.at_most(BESIDE_STALLED), p99])
}

fn measured(bench: &Bench, sides: [&mut Side; 2], packets: Packets, what: &str) -> Result<[Vec<Round>; 2]> {
    in_turns(what, bench.scale.pick(5, 2, 1), sides.map(|side| move || side.round(packets)))
}

/// Packets for 1.2 seconds, in a quick run for 0.6, and two in a smoke run.
fn packets(bench: &Bench, bytes: u32, interval: u32) -> Packets {
    let count = bench.scale.pick(1200 / interval, 600 / interval, 2);
    Packets { count, bytes, interval: Duration::from_millis(interval.into()) }
}

fn compared(case: &str, rounds: &[Round], baseline: &[Round]) -> [Figure; 3] {
    let figure = |metric, unit, of: fn(&Round) -> f64| {
        Figure::compared((NAME, case), metric, unit, (rounds, baseline), of)
    };
    [
        figure("cpu", Unit::Percent, |round| 100.0 * round.used.div_duration_f64(round.span)),
        figure("p50 of the last delivery", Unit::Microseconds, |round| round.last.percentile(50)),
        figure("p99 of the last delivery", Unit::Microseconds, |round| round.last.percentile(99)),
    ]
}

impl Way {
    fn case(self, what: &str) -> String {
        match self {
            Self::Stream => format!("streams, {what}"),
            Self::WebSocket => format!("WebSockets, {what}"),
        }
    }
}

impl Side {
    fn new(bench: &Bench, server: Server, way: Way, subscribers: u32) -> Result<Self> {
        let readers = server.subscriber(bench, "read", way, &[subscribers.to_string()])?;
        Ok(Self { server, readers })
    }

    fn round(&mut self, packets: Packets) -> Result<Round> {
        let Self { server, readers } = self;
        let before = server.at_rest()?;
        let (published, came) = thread::scope(|scope| {
            // The server waits for an interval before the first packet.
            let came = scope.spawn(|| readers.numbers(format_args!("{} {}", packets.count, packets.bytes)));
            let published = server.publish(packets)?;
            let came = came.join().map_err(|_| anyhow!("the readers' thread has panicked"))??;
            anyhow::Ok((published, came))
        })?;
        let used = server.at_rest()? - before;
        let count = usize::try_from(packets.count)?;
        ensure!([published.len(), came.len()] == [count; 2], "not all packets were published, or came");
        let first = published.first().copied().context("no packet")?;
        let arrived = Duration::from_nanos(came.last().copied().unwrap_or_default().saturating_sub(first));
        let waits =
            came.iter().zip(&published).map(|(came, at)| Duration::from_nanos(came.saturating_sub(*at)));
        Ok(Round {
            used,
            span: arrived.max(packets.interval * packets.count),
            last: Sorted::new(waits.collect()),
        })
    }
}

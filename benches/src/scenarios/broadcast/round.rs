//! One round: packets to all subscribers of one side.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use crate::{
    scenarios::{client::wait_until, tasks::PATIENCE},
    statistics::Sorted,
    usage,
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Packets {
    pub(super) count: u32,
    pub(super) bytes: u32,
    /// Time between two. None: the next follows at once.
    pub(super) interval: Option<Duration>,
}

pub(super) trait Side {
    /// Publishes one on this thread. Unless the packets are `paced`, waits until all subscribers have room.
    fn publish(&mut self, packet: Bytes, paced: bool) -> Result<()>;

    /// Processor time of the delivering thread.
    fn used(&self) -> Result<Duration>;

    /// Waits until all subscribers have this many packets. Returns the wait of each packet in microseconds,
    /// by subscriber. Fails unless each got all, whole and in order. Then begins anew.
    fn report(&mut self, packets: u32) -> Result<Vec<Vec<u32>>>;
}

#[derive(Clone, Debug)]
pub(super) struct Round {
    /// Processor time of the publishing and the delivering thread.
    pub(super) cpu: Duration,
    /// From the first publishing to the last delivery: at least the sum of all intervals.
    pub(super) span: Duration,
    /// For each packet, from its publishing to its last delivery.
    pub(super) last: Sorted,
    packets: u32,
    subscribers: u32,
}

impl Round {
    pub(super) fn events(&self) -> f64 {
        self.packets.into()
    }

    pub(super) fn deliveries(&self) -> f64 {
        f64::from(self.packets) * f64::from(self.subscribers)
    }
}

pub(super) fn measure(side: &mut dyn Side, packets: Packets) -> Result<Round> {
    let Packets { count, bytes, interval } = packets;
    let (used, own) = (side.used()?, usage::of_this_thread());
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
    let own = usage::of_this_thread() - own;
    let used = at_rest(side)?.saturating_sub(used);
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

/// Processor time of the delivering thread, once it is idle.
fn at_rest(side: &dyn Side) -> Result<Duration> {
    const LOOK: Duration = Duration::from_millis(20);
    const REST: Duration = Duration::from_millis(1);

    let end = Instant::now() + PATIENCE;
    let mut before = side.used()?;
    while Instant::now() < end {
        wait_until(Instant::now() + LOOK);
        let used = side.used()?;
        if used.saturating_sub(before) < REST {
            return Ok(used);
        }
        before = used;
    }
    anyhow::bail!("the packets do not come to an end")
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

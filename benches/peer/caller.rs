//! Calls an echo, and says what the calls took.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use weir_peer::Peer;

use crate::{Answering, connect, nanoseconds, processor_time, runtime};

const CONTRACT: &str = "echo@1";

pub(crate) fn start(socket: &str, name: &str) -> Result<Answering> {
    let runtime = runtime()?;
    let peer = runtime.block_on(connect(socket, name))?;
    Ok(Box::new(move |line| {
        let mut numbers = line.split(' ').map(str::parse);
        let mut number = || Ok::<u32, anyhow::Error>(numbers.next().context("three numbers are needed")??);
        let (number, size, at_once) = (number()?, number()?, number()?.max(1));
        let (used, start) = (processor_time(), Instant::now());
        let mut times = runtime.block_on(all(&peer, number / at_once, size, at_once))?;
        let (time, used) = (start.elapsed(), processor_time() - used);
        times.sort_unstable();
        let [p50, p99] = [50, 99].map(|percent| percentile(&times, percent));
        Ok([nanoseconds(time), used, nanoseconds(p50), nanoseconds(p99)]
            .map(|part| part.to_string())
            .join(" "))
    }))
}

/// The times of all calls: in `at_once` rows, each call after the answer to the one before.
async fn all(peer: &Peer, calls: u32, size: u32, at_once: u32) -> Result<Vec<Duration>> {
    if at_once == 1 {
        return row(peer, calls, size).await;
    }
    Ok(try_join_all((0..at_once).map(|_| row(peer, calls, size))).await?.concat())
}

async fn row(peer: &Peer, calls: u32, size: u32) -> Result<Vec<Duration>> {
    let size = usize::try_from(size)?;
    let mut template = vec![0x5a; size];
    let mut times = Vec::with_capacity(usize::try_from(calls)?);
    for number in 0..calls {
        let number = number.to_le_bytes();
        *template.first_chunk_mut().context("a payload has no room for a number")? = number;
        let payload = Bytes::copy_from_slice(&template);
        let start = Instant::now();
        let answer = peer.call(CONTRACT, "echo", payload).await?;
        times.push(start.elapsed());
        ensure!(answer.len() == size && answer.first_chunk() == Some(&number), "the echo answered otherwise");
    }
    Ok(times)
}

/// The least time that this percentage of all does not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

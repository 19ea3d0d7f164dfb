//! One byte there and back between the two of many pairs, again and again: over channels and over TCP.
//! `docs/benchmarks.md` explains the figures.

mod tcp;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_channel::{Receiver, Sender};
use bytes::Bytes;
use tokio::task::JoinHandle;
use weir_host::ExtensionConfig;

use super::{
    Bench, Scenario,
    calls::{Echo, Worker, server},
    embedder::{Embedder, builder},
    progress,
};
use crate::{
    figure::{Figure, Unit},
    process,
};

const NAME: &str = "ping-pong";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "one byte there and back, over channels and over TCP", run };

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = over_channels(bench)?;
    figures.extend(tcp::run(bench)?);
    Ok(figures)
}

/// The times of a case, each beside a round of the baseline.
#[derive(Debug)]
struct Measured {
    case: String,
    exchanges: u32,
    /// The target for an exchange, over the baseline.
    target: Option<f64>,
    weir: Vec<Round>,
    native: Vec<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    time: Duration,
    /// Seconds of the processor.
    user: f64,
    system: f64,
}

impl Round {
    fn of(exchange: impl FnOnce() -> Result<()>) -> Result<Self> {
        let ([user, system], start) = (process::user_and_system()?, Instant::now());
        exchange()?;
        let (time, [user_after, system_after]) = (start.elapsed(), process::user_and_system()?);
        Ok(Self { time, user: user_after - user, system: system_after - system })
    }
}

impl Measured {
    fn new(case: String, exchanges: u32, target: Option<f64>) -> Self {
        Self { case, exchanges, target, weir: Vec::new(), native: Vec::new() }
    }

    fn figures(&self) -> [Figure; 5] {
        let figure = |metric, unit, of: &dyn Fn(&Round) -> f64| {
            Figure::compared((NAME, &self.case), metric, unit, (&self.weir, &self.native), of)
        };
        let exchanges = f64::from(self.exchanges);
        let seconds = |round: &Round| round.time.as_secs_f64();
        [
            figure("time per exchange", Unit::Nanoseconds, &|round| 1e9 * seconds(round) / exchanges)
                .at_most(self.target),
            figure("user time", Unit::Milliseconds, &|round| 1e3 * round.user),
            figure("system time", Unit::Milliseconds, &|round| 1e3 * round.system),
            figure("total time", Unit::Milliseconds, &|round| 1e3 * seconds(round)),
            figure("cpu", Unit::Percent, &|round| 100.0 * (round.user + round.system) / seconds(round)),
        ]
    }
}

/// The target for an exchange over channels, over the baseline. It is high because every exchange touches another
/// instance's memory, and together these exceed the caches.
const TARGET: f64 = 4.0;

/// Pairs of extensions in which one calls the other, beside pairs of tasks.
fn over_channels(bench: &Bench) -> Result<Vec<Figure>> {
    let pairs = bench.scale.pick(1000, 1000, 8);
    let exchanges = bench.scale.pick(2000, 100, 20);
    let pings: Vec<_> = (0..pairs).map(|pair| contract("ping", pair)).collect();
    let weir = weir(bench, pairs)?;
    let worker = Worker::start()?;
    let mut measured = Measured::new("over channels".to_owned(), pairs * exchanges, Some(TARGET));
    let mut bare = Measured::new("two channels".to_owned(), pairs * exchanges, None);
    let rounds = bench.scale.pick(5, 3, 1);
    for round in 0..rounds {
        progress(&measured.case, round, rounds);
        let native = Round::of(|| worker.run(ended(pairs, move || callers(exchanges)))?)?;
        measured.native.push(native);
        measured.weir.push(Round::of(|| weir.ask_all(&pings, "go", &[exchanges, 1]).map(drop))?);
        bare.weir.push(Round::of(|| worker.run(ended(pairs, move || two_channels(exchanges)))?)?);
        bare.native.push(native);
    }
    Ok(measured.figures().into_iter().chain(bare.figures()).collect())
}

/// Starts all pairs, and waits until all have ended.
async fn ended(pairs: u32, pair: impl Fn() -> JoinHandle<Result<()>>) -> Result<()> {
    for ping in (0..pairs).map(|_| pair()).collect::<Vec<_>>() {
        ping.await??;
    }
    Ok(())
}

/// A pair of tasks: one calls, within a deadline, and the other answers.
fn callers(exchanges: u32) -> JoinHandle<Result<()>> {
    let (mut caller, echo) = server();
    let _pong = tokio::spawn(echo);
    tokio::spawn(async move {
        for number in 0..exchanges {
            let [said, ..] = number.to_le_bytes();
            let heard = caller.call(Bytes::copy_from_slice(&[said])).await?;
            ensure!(*heard == [said], "exchange {number} brought something else back");
        }
        Ok(())
    })
}

/// A pair of tasks: each has a channel of bytes to the other.
fn two_channels(exchanges: u32) -> JoinHandle<Result<()>> {
    let (there, came) = async_channel::bounded(1);
    let (back, heard) = async_channel::bounded(1);
    let _pong = tokio::spawn(pong(came, back));
    tokio::spawn(ping(there, heard, exchanges))
}

async fn ping(there: Sender<u8>, heard: Receiver<u8>, exchanges: u32) -> Result<()> {
    for number in 0..exchanges {
        let [said, ..] = number.to_le_bytes();
        there.send(said).await.context("the other has ended")?;
        ensure!(heard.recv().await? == said, "exchange {number} brought something else back");
    }
    Ok(())
}

async fn pong(came: Receiver<u8>, back: Sender<u8>) {
    while let Ok(byte) = came.recv().await {
        if back.send(byte).await.is_err() {
            return;
        }
    }
}

fn weir(bench: &Bench, pairs: u32) -> Result<Embedder> {
    let pings = (0..pairs).map(|pair| {
        bench.guests.caller(&format!("ping-{pair}"), &contract("ping", pair), &contract("pong", pair))
    });
    let pongs = (0..pairs).map(|pair| pong_of(bench, pair));
    Embedder::start(builder(pings.chain(pongs).collect::<Result<_>>()?))
}

fn pong_of(bench: &Bench, pair: u32) -> Result<ExtensionConfig> {
    let mut pong = bench.guests.small(&format!("pong-{pair}"), "answerer")?;
    let serves = contract("pong", pair);
    pong.fulfills = vec![serves.parse()?];
    pong.config.insert("serves".to_owned(), serves);
    Ok(pong)
}

fn contract(role: &str, pair: u32) -> String {
    format!("bench.{role}-{pair}@1")
}

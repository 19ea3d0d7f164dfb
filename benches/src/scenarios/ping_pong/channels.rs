//! Pairs of extensions in which one calls the other, beside pairs of tasks.

use anyhow::{Context, Result, ensure};
use async_channel::{Receiver, Sender};
use bytes::Bytes;
use tokio::task::JoinHandle;
use weir_host::{Config, ExtensionConfig, Main, MainConfig};

use super::{Measured, Round};
use crate::{
    figure::Figure,
    scenarios::{
        Bench, calls::Echo, embedder::Embedder, progress, round_trip::native::server, tasks::Worker,
    },
};

/// Every exchange touches another instance's memory, and together they exceed the caches.
const TARGET: f64 = 4.0;

pub(super) fn run(bench: &Bench) -> Result<Vec<Figure>> {
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

/// All pairs, from their start to their end.
async fn ended(pairs: u32, pair: impl Fn() -> JoinHandle<Result<()>>) -> Result<()> {
    for ping in (0..pairs).map(|_| pair()).collect::<Vec<_>>() {
        ping.await??;
    }
    Ok(())
}

/// One calls, within a deadline; the other answers.
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

/// Each has a channel of bytes to the other.
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
        let mut ping = extension(bench, "ping", "caller", pair)?;
        let pong = contract("pong", pair);
        ping.wants = vec![pong.parse()?];
        ping.config.insert("calls".to_owned(), pong);
        anyhow::Ok(ping)
    });
    let pongs = (0..pairs).map(|pair| extension(bench, "pong", "answerer", pair));
    let extensions = pings.chain(pongs).collect::<Result<_>>()?;
    Embedder::start(Main::builder(Config::new(MainConfig::default(), extensions)))
}

fn extension(bench: &Bench, role: &str, kind: &str, pair: u32) -> Result<ExtensionConfig> {
    let mut extension = bench.guests.small(&format!("{role}-{pair}"), kind)?;
    let serves = contract(role, pair);
    extension.fulfills = vec![serves.parse()?];
    extension.config.insert("serves".to_owned(), serves);
    Ok(extension)
}

fn contract(role: &str, pair: u32) -> String {
    format!("bench.{role}-{pair}@1")
}

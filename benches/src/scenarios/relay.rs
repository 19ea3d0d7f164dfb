//! From one extension to another and back, through Main's router. `docs/benchmarks.md` explains the figures.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use async_channel::Sender;
use bytes::Bytes;
use tokio::{sync::oneshot, time::timeout};
use weir_host::config::CpuShare;

use super::{
    Bench, Scenario,
    calls::{CAPACITY, Calls, Echo, SIZES, Worker, per_call},
    device::PATIENCE,
    embedder::{Embedder, builder},
    progress,
};
use crate::figure::{Figure, Unit};

const NAME: &str = "relay";

pub(super) const SCENARIO: Scenario = Scenario { name: NAME, about: "an extension calls another", run };

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let number = bench.scale.pick(150_000, 80_000, 1000);
    let (weir, worker) = (weir(bench)?, Worker::start()?);
    let router = router(&worker);
    let rounds = bench.scale.pick(7, 3, 1);
    let mut measured = SIZES.map(|_| (Vec::new(), Vec::new()));
    for round in 0..rounds {
        progress("calls", round, rounds);
        for ((name, size), (weir_rounds, native_rounds)) in SIZES.into_iter().zip(&mut measured) {
            let calls = Calls { number, size, at_once: 1 };
            native_rounds.push(worker.round(calls, router.clone()).context(name)?);
            weir_rounds.push(go(&weir, calls).context(name)?);
        }
    }
    let figures = SIZES.iter().zip(&measured).map(|((name, _), (weir, native))| {
        let call = |round: &Duration| per_call(*round, number);
        let figure = Figure::compared((NAME, name), "time per call", Unit::Nanoseconds, (weir, native), call);
        figure.at_most(2.5).stretch(2.0)
    });
    Ok(figures.collect())
}

/// The time from the start signal to the caller's report that it has all answers.
fn go(weir: &Embedder, calls: Calls) -> Result<Duration> {
    let start = Instant::now();
    weir.ask("relay@1", "go", &[calls.number, calls.size])?;
    Ok(start.elapsed())
}

fn weir(bench: &Bench) -> Result<Embedder> {
    let mut echo = bench.guests.echo()?;
    echo.limits.cpu_share = CpuShare::WHOLE;
    let caller = bench.guests.caller("caller", "relay@1", "echo@1")?;
    Embedder::start(builder(vec![echo, caller]))
}

/// The caller's end of three tasks of one thread: one calls, one routes, one echoes.
#[derive(Clone, Debug)]
struct Router(Sender<Addressed>);

#[derive(Debug)]
struct Addressed {
    contract: &'static str,
    request: Request,
}

#[derive(Debug)]
#[expect(dead_code, reason = "the echo has only one operation")]
struct Request {
    operation: u32,
    payload: Bytes,
    reply: oneshot::Sender<Bytes>,
}

fn router(worker: &Worker) -> Router {
    let (owner, owned) = async_channel::bounded::<Request>(CAPACITY);
    worker.spawn(async move {
        while let Ok(request) = owned.recv().await {
            // The reply fails if the caller has given up.
            let _answered = request.reply.send(request.payload);
        }
    });
    let (router, routed) = async_channel::bounded::<Addressed>(CAPACITY);
    let owners = HashMap::from([("echo@1", owner)]);
    worker.spawn(async move {
        while let Ok(Addressed { contract, request }) = routed.recv().await {
            // Without an owner, the caller hears that its request is gone.
            if let Some(owner) = owners.get(contract)
                && owner.send(request).await.is_err()
            {
                return;
            }
        }
    });
    Router(router)
}

impl Echo for Router {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        let (reply, answer) = oneshot::channel();
        let request = Request { operation: 0, payload, reply };
        self.0.send(Addressed { contract: "echo@1", request }).await.context("the router has ended")?;
        timeout(PATIENCE, answer).await.context("no answer comes")?.context("nobody owns the contract")
    }
}

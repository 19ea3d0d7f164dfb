//! From Main to an extension and back, from a task of Main's own thread. `docs/benchmarks.md` explains the
//! figures.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use async_channel::{Receiver, Sender};
use bytes::Bytes;
use weir_host::{
    Client,
    config::{ComponentSource, CpuShare},
};

use super::{
    Bench, Scenario,
    calls::{CAPACITY, Calls, Echo, SIZES, Worker, per_call, server},
    embedder::{Embedder, builder, on_the_worker},
    progress,
};
use crate::figure::{Figure, Unit};

const NAME: &str = "round-trip";

pub(super) const SCENARIO: Scenario = Scenario { name: NAME, about: "Main calls an extension", run };

/// Concurrent calls in the pipelined cases.
const PIPELINED: u32 = 64;

#[derive(Debug)]
struct Case {
    name: String,
    size: u32,
    at_once: u32,
    way: Way,
    /// The target for a call, over the baseline.
    target: Option<f64>,
    stretch: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// An extension with its own loop.
    Raw,
    /// An extension with the SDK's handlers.
    Sdk,
    /// A native task, called without deadlines.
    WithoutDeadlines,
    /// A native task, through two channels.
    Channels,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let number = bench.scale.pick(200_000, 100_000, 1000);
    let (raw, sdk) = (weir(bench, "echo-raw")?, weir(bench, "echo")?);
    let worker = Worker::start()?;
    let (caller, echo) = server();
    worker.spawn(echo);
    let pair = pair(&worker);
    let rounds = bench.scale.pick(7, 3, 1);
    let cases = cases();
    let mut measured: Vec<_> = cases.iter().map(|_| (Vec::new(), Vec::new())).collect();
    for round in 0..rounds {
        progress("calls", round, rounds);
        for (case, (beside, baseline)) in cases.iter().zip(&mut measured) {
            let context = || case.name.clone();
            let calls = Calls { number, size: case.size, at_once: case.at_once };
            baseline.push(worker.round(calls, caller.clone()).with_context(context)?);
            let time = match case.way {
                Way::Raw => raw.timed(&[number, case.size, case.at_once]),
                Way::Sdk => sdk.timed(&[number, case.size, case.at_once]),
                Way::WithoutDeadlines => worker.round(calls, caller.without_deadlines()),
                Way::Channels => worker.round(calls, pair.clone()),
            };
            beside.push(time.with_context(context)?);
        }
    }
    let figures = cases.iter().zip(&measured).map(|(case, (beside, baseline))| {
        let (of, rounds) = ((NAME, &*case.name), (&**beside, &**baseline));
        let call = |round: &Duration| per_call(*round, number);
        let figure = Figure::compared(of, "time per call", Unit::Nanoseconds, rounds, call);
        figure.at_most(case.target).stretch(case.stretch)
    });
    Ok(figures.collect())
}

fn cases() -> Vec<Case> {
    let case = |name: String, size, way| Case { name, size, at_once: 1, way, target: None, stretch: None };
    let alone = |&(name, size): &(&str, u32)| Case {
        target: Some(if size > 1024 { 2.6 } else { 2.25 }),
        stretch: Some(1.75),
        ..case(name.to_owned(), size, Way::Raw)
    };
    let mut cases: Vec<_> = SIZES.iter().map(alone).collect();
    cases.push(case("1 KiB, through the SDK".to_owned(), 1024, Way::Sdk));
    let pipelined = case(format!("1 KiB, {PIPELINED} under way"), 1024, Way::Raw);
    cases.push(Case { at_once: PIPELINED, ..pipelined });
    cases.push(case("1 KiB, native without deadlines".to_owned(), 1024, Way::WithoutDeadlines));
    cases.extend(SIZES.map(|(name, size)| case(format!("{name}, two channels"), size, Way::Channels)));
    cases
}

/// A Main with a handler that calls from the worker thread, like every caller that shares a thread with Main.
fn weir(bench: &Bench, component: &str) -> Result<Embedder> {
    let mut echo = bench.guests.echo()?;
    echo.component = ComponentSource::Path(bench.guests.component(component));
    // The echo is busy all the time.
    echo.limits.cpu_share = CpuShare::WHOLE;
    let (service, later) = on_the_worker(|client: Client, numbers| async move {
        let [number, size, at_once] = *numbers else { bail!("three numbers are needed") };
        let echo = client.operation("echo@1", "echo")?;
        Ok(Calls { number, size, at_once }.make(echo).await?.0)
    })?;
    let embedder = Embedder::start(builder(vec![echo]).serve(service))?;
    later.get_or_init(|| embedder.client().clone());
    Ok(embedder)
}

/// Two tasks with a channel in each direction.
#[derive(Clone, Debug)]
struct Pair {
    there: Sender<Bytes>,
    answers: Receiver<Bytes>,
}

fn pair(worker: &Worker) -> Pair {
    let (there, came) = async_channel::bounded(CAPACITY);
    let (back, answers) = async_channel::bounded(CAPACITY);
    worker.spawn(async move {
        while let Ok(payload) = came.recv().await {
            if back.send(payload).await.is_err() {
                return;
            }
        }
    });
    Pair { there, answers }
}

impl Echo for Pair {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        self.there.send(payload).await.context("the echo has ended")?;
        self.answers.recv().await.context("the echo has ended")
    }
}

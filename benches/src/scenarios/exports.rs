//! Functions that a component exports, beside a handler of the SDK. `docs/benchmarks.md` explains the figures.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use weir_host::{Client, ExtensionConfig};

use super::{
    Bench, Scenario,
    calls::per_call,
    embedder::{Embedder, builder, on_the_worker, patient},
    progress,
};
use crate::figure::{Figure, Unit};

const NAME: &str = "exports";

pub(super) const SCENARIO: Scenario = Scenario { name: NAME, about: "functions of a component", run };

const ORDER: &str = r#"{"order":{"number":4711,"customer":"Ada Lovelace","amount":99.5,"paid":true,"items":["a lamp","two chairs"]}}"#;

/// The target for the processor time of a call, over that of a handler of the SDK.
const CPU: f64 = 1.5;

/// The extensions that the service calls, by number.
const CALLED: [(&str, &str); 3] =
    [("orders-sdk", "orders-sdk@1"), ("orders", "orders@1"), ("per-call", "per-call@1")];

/// What a round took: in all, and of the processor, by the extensions.
#[derive(Clone, Copy)]
struct Round {
    time: Duration,
    cpu: Duration,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let [number, fresh] = bench.scale.pick([50_000, 5000], [20_000, 2000], [500, 50]);
    let rounds = bench.scale.pick(7, 3, 1);
    let weir = weir(bench)?;
    let mut called = CALLED.map(|_| Vec::new());
    let mut between = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        progress("calls", round, rounds);
        for ((place, (id, _)), measured) in (0..).zip(CALLED).zip(&mut called) {
            let number = if id == "per-call" { fresh } else { number };
            measured.push(round_of(&weir, &[id], || weir.timed(&[place, number]))?);
        }
        for (operation, measured) in ["check-by-text", "check"].into_iter().zip(&mut between) {
            measured.push(round_of(&weir, &["shop", "orders"], || shop(&weir, operation, number))?);
        }
    }
    let [sdk, kept, for_each] = &called;
    let [by_text, as_they_are] = &between;
    let mut figures = Vec::new();
    for (case, number, rounds, baseline, target) in [
        ("one instance", number, kept, &sdk[..], Some(CPU)),
        ("an instance for each call", fresh, for_each, &[], None),
        ("from another component", number, as_they_are, by_text, Some(1.0)),
    ] {
        let figure = |metric, of: fn(&Round) -> Duration| {
            let call = |round: &Round| per_call(of(round), number);
            Figure::compared((NAME, case), metric, Unit::Nanoseconds, (rounds, baseline), call)
        };
        figures.push(figure("cpu per call", |round| round.cpu).at_most(target));
        figures.push(figure("time per call", |round| round.time));
    }
    Ok(figures)
}

/// What these extensions need of the processor meanwhile.
fn round_of(weir: &Embedder, ids: &[&str], call: impl FnOnce() -> Result<Duration>) -> Result<Round> {
    let cpu = || ids.iter().map(|id| Ok(weir.running(id)?.cpu)).sum::<Result<Duration>>();
    let before = cpu()?;
    let time = call()?;
    Ok(Round { time, cpu: cpu()?.saturating_sub(before) })
}

/// Has the shop check so many orders, and returns the time of that.
fn shop(weir: &Embedder, operation: &str, times: u32) -> Result<Duration> {
    let start = Instant::now();
    let arguments = format!("{{\"times\":{times}}}");
    let paid =
        weir.run(async { Ok(weir.client().call_with("shop@1", operation, arguments, patient()).await?) })?;
    ensure!(paid == "0", "{} orders are paid", String::from_utf8_lossy(&paid));
    Ok(start.elapsed())
}

/// A Main with a handler that calls from the worker thread.
fn weir(bench: &Bench) -> Result<Embedder> {
    let exporting = |id: &str, component: &str, contract: &str, export: &str| -> Result<ExtensionConfig> {
        let mut extension = bench.guests.busy(id, component)?;
        extension.fulfills = vec![contract.parse()?];
        extension.exports = [(contract.parse()?, export.parse()?)].into();
        Ok(extension)
    };
    const ORDERS: &str = "bench:orders/orders@1.0.0";
    let orders = exporting("orders", "orders", "orders@1", ORDERS)?;
    let mut fresh = exporting("per-call", "orders", "per-call@1", ORDERS)?;
    fresh.per_call = true;
    let mut shop = exporting("shop", "shop", "shop@1", "bench:orders/shop@1.0.0")?;
    for import in [ORDERS, "bench:orders/orders-by-text@1.0.0"] {
        shop.imports.insert(import.parse()?, "orders@1".parse()?);
    }
    let mut sdk = bench.guests.busy("orders-sdk", "orders-sdk")?;
    sdk.fulfills = vec!["orders-sdk@1".parse()?];
    let (service, later) = on_the_worker(|client: Client, numbers| async move {
        let [place, number] = *numbers else { bail!("two numbers are needed") };
        let (_, contract) = CALLED.get(usize::try_from(place)?).context("there is no such extension")?;
        let check = client.operation(contract, "check")?;
        let start = Instant::now();
        for _ in 0..number {
            let answer: Bytes = check.call(ORDER).await?;
            ensure!(answer.starts_with(b"{\"number\":4711"), "a wrong answer");
        }
        Ok(start.elapsed())
    })?;
    let embedder = Embedder::start(builder(vec![orders, fresh, shop, sdk]).serve(service))?;
    later.get_or_init(|| embedder.client().clone());
    Ok(embedder)
}

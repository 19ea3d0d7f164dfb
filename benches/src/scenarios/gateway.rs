//! Apps at the gateway, over TCP: requests to an extension, 1024 subscribers of one topic, and WebSockets that wait.
//! `docs/benchmarks.md` explains the figures.

mod audience;
mod server;

use std::time::Duration;

use anyhow::{Context, Result};

use self::server::Server;
use super::{
    Bench, Scenario,
    calls::{Round, SIZES},
    device::{Device, SETTLING, allow_connections},
    idle::{Counts, MANY},
    progress,
};
use crate::figure::{Figure, Unit};

const NAME: &str = "gateway";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "apps at the gateway, beside native servers", run };

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    allow_connections(MANY.into())?;
    let mut figures = requests(bench)?;
    figures.extend(audience::figures(bench)?);
    figures.extend(idle(bench)?);
    Ok(figures)
}

/// Requests from an app to an extension and back, beside a native echo of the text.
fn requests(bench: &Bench) -> Result<Vec<Figure>> {
    let client = |server: Server| anyhow::Ok((server.client(bench, "request", &[])?, server));
    let (mut weir, mut native) = (client(Server::weir(bench)?)?, client(Server::native(bench)?)?);
    let mut measured = SIZES.map(|_| (Vec::new(), Vec::new()));
    let number = bench.scale.pick(20_000, 5000, 100);
    let rounds = bench.scale.pick(7, 3, 1);
    let round = |(caller, server): &mut (Device, Server), size| {
        Round::of(caller, format_args!("{number} {size}"), number, || server.used())
    };
    for number in 0..rounds {
        progress("requests", number, rounds);
        for ((name, size), (here, there)) in SIZES.into_iter().zip(&mut measured) {
            here.push(round(&mut weir, size).context(name)?);
            there.push(round(&mut native, size).with_context(|| format!("{name}, native"))?);
        }
    }
    let figures = SIZES.iter().zip(&measured).flat_map(|((name, _), (weir, native))| {
        let figure = |metric, of: fn(&Round) -> f64| {
            Figure::compared((NAME, name), metric, Unit::Microseconds, (weir, native), of)
        };
        [
            figure("cpu per request", |round| round.processor).at_most(1.6),
            figure("cpu per request, server", |round| round.server),
            figure("p50", |round| round.p50).at_most(1.5),
            figure("p99", |round| round.p99),
        ]
    });
    Ok(figures.collect())
}

/// WebSockets that wait: what they take of Main, beside a native server.
fn idle(bench: &Bench) -> Result<Vec<Figure>> {
    let counts = Counts::new(bench);
    let rounds = bench.scale.pick(3, 1, 1);
    // In a full run, the gateway would have ended a connection by then that proved nothing.
    let rest = bench.scale.pick(SETTLING, Duration::from_millis(500), Duration::ZERO);
    let wait = |server: &Server| {
        let connect = |count: u32| server.client(bench, "websockets", &[count.to_string()]);
        counts.wait(bench, &server.process(), rest, connect)
    };
    let (mut weir, mut native) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        progress("connecting and waiting", round, rounds);
        weir.push(wait(&Server::weir_alone(bench)?)?);
        native.push(wait(&Server::native(bench)?)?);
    }
    Ok(counts.figures(NAME, &weir, &native))
}

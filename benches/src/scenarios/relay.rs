//! From one extension to another and back, through Main's router. `docs/benchmarks.md` explains the figures.

mod native;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use weir_host::{Config, Main, MainConfig, config::CpuShare};

use self::native::Native;
use super::{
    Bench, Scenario,
    calls::{Calls, SIZES, per_call},
    embedder::Embedder,
    progress,
};
use crate::figure::{Figure, Unit};

const NAME: &str = "relay";

pub(super) const SCENARIO: Scenario = Scenario { name: NAME, about: "an extension calls another", run };

/// The target and the stretch target for a call, over the baseline.
const TARGET: (f64, f64) = (2.5, 2.0);

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let number = bench.scale.pick(150_000, 80_000, 1000);
    let (weir, native) = (weir(bench)?, Native::start()?);
    let rounds = bench.scale.pick(7, 3, 1);
    let mut measured = SIZES.map(|_| (Vec::new(), Vec::new()));
    for round in 0..rounds {
        progress("calls", round, rounds);
        for ((name, size), (weir_rounds, native_rounds)) in SIZES.into_iter().zip(&mut measured) {
            let calls = Calls { number, size, at_once: 1 };
            native_rounds.push(native.round(calls).context(name)?);
            weir_rounds.push(go(&weir, calls).context(name)?);
        }
    }
    let figures = SIZES.iter().zip(&measured).map(|((name, _), (weir, native))| {
        let (weir, native) = (per_call(weir, number), per_call(native, number));
        let (target, stretch) = TARGET;
        let figure = Figure::of_rounds(NAME, *name, "time per call", Unit::Nanoseconds, &weir);
        figure.beside_rounds(&weir, &native).at_most(target).stretch(stretch)
    });
    Ok(figures.collect())
}

/// From the start signal to the caller's report that it has all answers.
fn go(weir: &Embedder, calls: Calls) -> Result<Duration> {
    let start = Instant::now();
    weir.ask("relay@1", "go", &[calls.number, calls.size])?;
    Ok(start.elapsed())
}

fn weir(bench: &Bench) -> Result<Embedder> {
    let mut echo = bench.guests.echo()?;
    echo.limits.cpu_share = CpuShare::WHOLE;
    let mut caller = bench.guests.small("caller", "caller")?;
    caller
        .config
        .extend([("serves", "relay@1"), ("calls", "echo@1")].map(|(k, v)| (k.to_owned(), v.to_owned())));
    caller.fulfills = vec!["relay@1".parse()?];
    caller.wants = vec!["echo@1".parse()?];
    Embedder::start(Main::builder(Config::new(MainConfig::default(), vec![echo, caller])))
}

//! What the bounds are made of, measured alone: one slice, and one bulk operation.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use weir_host::{Config, Main, MainConfig};

use crate::{
    scenarios::{
        Bench,
        client::{Host, Kind},
    },
    statistics::{median, microseconds},
};

/// Fuel after which an extension lets others run: `docs/operators.md`.
const SLICE: u32 = 100_000;

/// In microseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenarios) struct Pieces {
    /// What a guest that counts takes for the fuel of one slice.
    pub(in crate::scenarios) slice: f64,
    /// What filling the memory of a hostile guest takes.
    pub(in crate::scenarios) stall: f64,
    /// Bytes of that memory.
    pub(in crate::scenarios) filled: u64,
}

/// Measures both, with nobody else at work.
pub(in crate::scenarios) fn measure(bench: &Bench) -> Result<Pieces> {
    let fuel: u32 = bench.scale.pick(2_000_000_000, 500_000_000, 10_000_000);
    let mut slices = bench.guests.of_kind("burns", "probe")?;
    slices.fulfills = vec!["probe@1".parse()?];
    slices.limits.fuel_per_message = fuel.into();
    let host = Host::start(Kind::Blocking, Main::builder(Config::new(MainConfig::default(), vec![slices])))?;
    let slice = (0..bench.scale.pick(5, 3, 1)).map(|_| {
        host.start_all(["burns"])?;
        let (time, outcome) = timed(|| host.call("probe@1", "spin"));
        // The record of it may come after the answer.
        host.stop_all(["burns"])?;
        let failures = host.control().status("burns")?.failures;
        let burnt = failures.last().is_some_and(|failure| failure.cause.contains("`fuel-per-message`"));
        ensure!(burnt, "the fuel was not used up: {outcome:?}, {:?}", failures.last());
        Ok(microseconds(time) * f64::from(SLICE) / f64::from(fuel))
    });
    let slice = median(slice.collect::<Result<_>>()?);
    drop(host);

    let mut fills = bench.guests.of_kind("fills", "probe")?;
    fills.fulfills = vec!["probe@1".parse()?];
    let host = Host::start(Kind::Blocking, Main::builder(Config::new(MainConfig::default(), vec![fills])))?;
    host.start_all(["fills"])?;
    let filled = host.call("probe@1", "nothing")?;
    let filled = str::from_utf8(&filled)?.parse()?;
    let stall = (0..bench.scale.pick(101, 31, 3)).map(|_| {
        let (nothing, outcome) = timed(|| host.call("probe@1", "nothing"));
        outcome?;
        let (fill, outcome) = timed(|| host.call("probe@1", "fill"));
        outcome?;
        Ok(microseconds(fill) - microseconds(nothing))
    });
    Ok(Pieces { slice, stall: median(stall.collect::<Result<_>>()?), filled })
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

//! The parts of the bounds, measured alone: one slice of fuel, and one bulk operation.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use weir_host::{Config, ExtensionConfig, Main, MainConfig};

use crate::{
    scenarios::{
        Bench,
        client::{Host, Kind},
    },
    statistics::{median, microseconds},
};

/// In microseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenarios) struct Pieces {
    /// One slice's fuel in a guest that counts.
    pub(in crate::scenarios) counting: f64,
    /// The same in a guest that divides.
    pub(in crate::scenarios) dividing: f64,
    /// The same in a guest that follows pointers through its memory, against all caches.
    pub(in crate::scenarios) chasing: f64,
    /// Filling the memory of a hostile guest.
    pub(in crate::scenarios) stall: f64,
    /// Bytes of that memory.
    pub(in crate::scenarios) filled: u64,
}

impl Pieces {
    /// The longest slice of code: fuel counts instructions, and these differ in time.
    pub(in crate::scenarios) fn slice(&self) -> f64 {
        self.counting.max(self.dividing).max(self.chasing)
    }
}

pub(in crate::scenarios) fn measure(bench: &Bench) -> Result<Pieces> {
    let [counting, dividing, chasing] = ["count", "divide", "chase"].map(|work| slice(bench, work));
    let (stall, filled) = stall(bench)?;
    Ok(Pieces { counting: counting?, dividing: dividing?, chasing: chasing?, stall, filled })
}

/// Lets a guest use up much fuel at this work.
fn slice(bench: &Bench, work: &str) -> Result<f64> {
    let fuel: u32 = bench.scale.pick(1_000_000_000, 200_000_000, 10_000_000);
    let mut burns = bench.guests.of_kind("burns", "probe")?;
    burns.limits.fuel_per_message = fuel.into();
    let slice = u32::try_from(burns.limits.fixed().fuel_slice)?;
    let host = probe(burns)?;
    let times = (0..bench.scale.pick(5, 3, 1)).map(|_| {
        host.start_all(["burns"])?;
        let (time, outcome) = timed(|| host.call("probe@1", work));
        // The record of it may come after the answer.
        host.stop_all(["burns"])?;
        let failures = host.control().status("burns")?.failures;
        let burnt = failures.last().is_some_and(|failure| failure.cause.contains("`fuel-per-message`"));
        ensure!(burnt, "the fuel was not used up: {outcome:?}, {:?}", failures.last());
        Ok(microseconds(time) * f64::from(slice) / f64::from(fuel))
    });
    Ok(median(times.collect::<Result<_>>()?))
}

fn stall(bench: &Bench) -> Result<(f64, u64)> {
    let host = probe(bench.guests.of_kind("fills", "probe")?)?;
    host.start_all(["fills"])?;
    let filled = host.call("probe@1", "nothing")?;
    let times = (0..bench.scale.pick(101, 31, 3)).map(|_| {
        let (nothing, outcome) = timed(|| host.call("probe@1", "nothing"));
        outcome?;
        let (fill, outcome) = timed(|| host.call("probe@1", "fill"));
        outcome?;
        Ok(microseconds(fill) - microseconds(nothing))
    });
    Ok((median(times.collect::<Result<_>>()?), str::from_utf8(&filled)?.parse()?))
}

fn probe(mut extension: ExtensionConfig) -> Result<Host> {
    extension.fulfills = vec!["probe@1".parse()?];
    let config = Config::new(MainConfig::default(), vec![extension]);
    Host::start(Kind::Blocking, Main::builder(config))
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

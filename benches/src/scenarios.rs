//! What is measured. A scenario is a function in a file of its own, and one line of the list here.

mod broadcast;
mod calls;
mod client;
mod device;
mod embedder;
mod footprint;
mod hooks;
mod idle;
mod isolation;
mod kill;
mod metering;
mod one_hook;
mod ping_pong;
mod relay;
mod round_trip;
mod shared_channel;
mod spawn;
mod startup;
mod tasks;

use std::path::PathBuf;

use anyhow::Result;

use crate::{figure::Figure, guests::Guests, scale::Scale};

/// Every scenario, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 13] = [
    idle::SCENARIO,
    footprint::SCENARIO,
    round_trip::SCENARIO,
    relay::SCENARIO,
    broadcast::SCENARIO,
    shared_channel::SCENARIO,
    hooks::SCENARIO,
    spawn::SCENARIO,
    ping_pong::SCENARIO,
    metering::SCENARIO,
    startup::SCENARIO,
    isolation::SCENARIO,
    kill::SCENARIO,
];

/// One scenario.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// In a few words, for whoever waits for it.
    pub(crate) about: &'static str,
    /// Measures. Fails if something does not work: never because it is slow.
    pub(crate) run: fn(&Bench) -> Result<Vec<Figure>>,
}

/// What a scenario measures with.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) scale: Scale,
    pub(crate) guests: Guests,
    /// A program (`benches/device`) that is looked at from outside.
    pub(crate) device: PathBuf,
}

/// Tells whoever waits how far it is.
pub(crate) fn progress(what: &str, step: usize, of: usize) {
    eprintln!("  {what} ({}/{of})", step + 1);
}

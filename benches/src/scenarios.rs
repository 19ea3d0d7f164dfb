//! The scenarios. Each is a function in its own file, and one line of this list.

mod broadcast;
mod calls;
mod client;
mod descriptors;
mod device;
mod embedder;
pub(crate) mod fleet;
pub(crate) mod footprint;
mod gateway;
mod hooks;
mod idle;
mod isolation;
mod kill;
mod metering;
mod one_hook;
mod peers;
mod ping_pong;
mod relay;
mod round_trip;
mod services;
mod shared_channel;
mod spawn;
mod startup;
mod tasks;

use std::path::PathBuf;

use anyhow::Result;

use crate::{emulator::Emulator, figure::Figure, guests::Guests, scale::Scale};

/// Every scenario, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 17] = [
    idle::SCENARIO,
    footprint::SCENARIO,
    round_trip::SCENARIO,
    relay::SCENARIO,
    peers::SCENARIO,
    gateway::SCENARIO,
    fleet::SCENARIO,
    services::SCENARIO,
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

#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Measures. Fails only if something does not work, never for being slow.
    pub(crate) run: fn(&Bench) -> Result<Vec<Figure>>,
}

#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) scale: Scale,
    pub(crate) guests: Guests,
    pub(crate) device: PathBuf,
    /// None: the device is this machine.
    pub(crate) emulator: Option<Emulator>,
    pub(crate) peer: PathBuf,
    pub(crate) gateway: PathBuf,
    /// None where there is no NATS server.
    pub(crate) fleet: Option<Fleet>,
}

impl Bench {
    /// What stands for this machine's processor, as the record has it.
    pub(crate) fn instead(&self) -> Option<String> {
        let interpreted = cfg!(feature = "pulley").then(|| "interpreted by Pulley".to_owned());
        self.emulator.as_ref().map(Emulator::name).or(interpreted)
    }
}

/// The programs of the scenario `fleet`.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// It measures, and starts the others.
    pub(crate) program: PathBuf,
    pub(crate) weir: PathBuf,
    pub(crate) bridge: PathBuf,
    pub(crate) server: PathBuf,
}

pub(crate) fn progress(what: &str, step: usize, of: usize) {
    eprintln!("  {what} ({}/{of})", step + 1);
}

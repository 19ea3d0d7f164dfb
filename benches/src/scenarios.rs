//! The scenarios. Each is a function in its own file, and one line of this list.

mod broadcast;
pub(crate) mod calls;
mod device;
mod embedder;
mod exports;
pub(crate) mod fleet;
pub(crate) mod footprint;
mod gateway;
mod hooks;
pub(crate) mod http_server;
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

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use clap::ValueEnum;

use crate::{figure::Figure, guests::Guests, machine::Emulator, programs};

/// Every scenario, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 19] = [
    idle::SCENARIO,
    footprint::SCENARIO,
    round_trip::SCENARIO,
    relay::SCENARIO,
    peers::SCENARIO,
    gateway::SCENARIO,
    fleet::SCENARIO,
    services::SCENARIO,
    http_server::SCENARIO,
    exports::SCENARIO,
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
    /// The program of Main as on a device.
    pub(crate) device: PathBuf,
    /// What runs `device`. `None`: this machine itself.
    pub(crate) emulator: Option<Emulator>,
    /// None where there is no NATS server.
    pub(crate) fleet: Option<Fleet>,
    /// The command `wasmtime`. None where there is none.
    pub(crate) wasmtime: Option<PathBuf>,
}

impl Bench {
    /// This program as another process, which does the work that `what` names (`benches/src/programs.rs`).
    pub(crate) fn program(&self, what: &str) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([programs::BESIDE, what]);
        Ok(command)
    }

    /// What stands for this machine's processor, as the record has it. `None` if nothing does.
    pub(crate) fn instead(&self) -> Option<String> {
        let interpreted = cfg!(feature = "pulley").then(|| "interpreted by Pulley".to_owned());
        self.emulator.as_ref().map(Emulator::name).or(interpreted)
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// For the record.
    Full,
    /// To find regressions.
    Quick,
    /// To see that everything runs. The figures mean nothing.
    Smoke,
}

impl Scale {
    pub(crate) fn pick<T>(self, full: T, quick: T, smoke: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Smoke => smoke,
        }
    }
}

/// The programs of the scenario `fleet`.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The program that measures, and starts the others.
    pub(crate) program: PathBuf,
    pub(crate) weir: PathBuf,
    pub(crate) bridge: PathBuf,
    pub(crate) server: PathBuf,
}

pub(crate) fn progress(what: &str, step: usize, of: usize) {
    eprintln!("  {what} ({}/{of})", step + 1);
}

/// Takes all measurements in turns, in several rounds, so that disturbances of the machine affect all of them.
fn in_turns<const N: usize, T>(
    what: &str,
    rounds: usize,
    mut all: [impl FnMut() -> Result<T>; N],
) -> Result<[Vec<T>; N]> {
    let mut measured = [const { Vec::new() }; N];
    for round in 0..rounds {
        progress(what, round, rounds);
        for (measure, measured) in all.iter_mut().zip(&mut measured) {
            measured.push(measure()?);
        }
    }
    Ok(measured)
}

//! A program that serves an echo: the same beside Main and beside the native caller.

use std::{path::Path, process::Command, time::Instant};

use anyhow::Result;

use super::{Requests, Round, SIDECAR};
use crate::{
    scenarios::{Bench, device::Device},
    statistics::microseconds,
    usage,
};

#[derive(Debug)]
pub(super) struct Sidecar(Device);

impl Sidecar {
    pub(super) fn start(bench: &Bench, socket: &Path) -> Result<Self> {
        let (name, contract) = SIDECAR;
        let mut command = Command::new(&bench.peer);
        Device::start(command.arg("serve").arg(socket).args([name, contract])).map(Self)
    }

    /// `call` makes the requests from this process.
    pub(super) fn round(&mut self, requests: Requests, call: impl FnOnce() -> Result<()>) -> Result<Round> {
        let of_sidecar = self.used()?;
        let (of_caller, start) = (usage::of_all_threads(), Instant::now());
        call()?;
        let (time, of_caller) = (start.elapsed(), usage::of_all_threads() - of_caller);
        let of_sidecar = self.used()? - of_sidecar;
        let number = f64::from(requests.number);
        Ok(Round {
            processor: (microseconds(of_caller) + of_sidecar) / number,
            time: microseconds(time) / number,
            latency: None,
        })
    }

    /// Its processor time so far, in microseconds.
    fn used(&mut self) -> Result<f64> {
        Ok(self.0.ask("used")?.parse::<f64>()? / 1e3)
    }
}

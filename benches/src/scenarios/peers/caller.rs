//! A program that calls: the same against Main and against the native server.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use super::{APP, Latency, Requests, Round};
use crate::{
    scenarios::{Bench, device::Device},
    statistics::microseconds,
    usage,
};

#[derive(Debug)]
pub(super) struct Caller(Device);

impl Caller {
    pub(super) fn start(bench: &Bench, socket: &Path) -> Result<Self> {
        Device::start(Command::new(&bench.peer).arg("call").arg(socket).arg(APP)).map(Self)
    }

    /// Both servers are in this process, which does nothing else.
    pub(super) fn round(&mut self, requests: Requests) -> Result<Round> {
        let Requests { number, size, at_once } = requests;
        let before = usage::of_all_threads();
        let answer = self.0.ask(format_args!("{number} {size} {at_once}"))?;
        let of_server = microseconds(usage::of_all_threads() - before);
        let numbers = answer.split(' ').map(|nanoseconds| Ok(nanoseconds.parse::<f64>()? / 1e3));
        let numbers: Result<Vec<_>> = numbers.collect();
        let [time, of_caller, p50, p99] =
            numbers?.try_into().ok().context("the caller does not answer with four numbers")?;
        let number = f64::from(number);
        Ok(Round {
            processor: (of_server + of_caller) / number,
            time: time / number,
            latency: Some(Latency { p50, p99 }),
        })
    }
}

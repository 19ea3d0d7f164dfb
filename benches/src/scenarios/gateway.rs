//! Apps at the gateway, over TCP: requests to an extension, 1024 subscribers of one topic, and WebSockets that wait.
//! `docs/benchmarks.md` explains the figures.

mod audience;
mod idle;
mod requests;
mod server;

use anyhow::Result;

use super::{Bench, Scenario, descriptors::allow_descriptors};
use crate::figure::Figure;

const NAME: &str = "gateway";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "apps at the gateway, beside native servers", run };

/// Connections in a run that is not for smoke.
const MANY: u32 = 1024;

/// Descriptors of a process beside those of connections.
const DESCRIPTORS: u64 = 200;

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    allow_descriptors(u64::from(MANY) + DESCRIPTORS)?;
    let mut figures = requests::figures(bench)?;
    figures.extend(audience::figures(bench)?);
    figures.extend(idle::figures(bench)?);
    Ok(figures)
}

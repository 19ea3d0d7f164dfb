//! Measures a fleet: processes of their own for each Main, each bridge and the NATS server. This process calls.
//!
//! It prints one object a line, for the scenario `fleet` of `weir-bench`: what was measured, in how many rounds, and the
//! rounds of the baseline beside them. It links neither Main nor wasmtime.

#![expect(clippy::print_stdout, reason = "it talks to its parent process")]

mod calls;
mod nodes;
mod site;

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use tokio::runtime::Builder;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure.
    Measure(Measure),
    /// Answer requests of NATS with their payload, until killed.
    Echo {
        /// The server.
        server: SocketAddr,
    },
}

/// The programs, and how much is done.
#[derive(Debug, Args)]
struct Measure {
    /// The command `weir`.
    #[arg(long)]
    weir: PathBuf,
    /// The command `weir-nats`.
    #[arg(long)]
    bridge: PathBuf,
    /// The command `nats-server`.
    #[arg(long)]
    server: PathBuf,
    /// The folder with `echo.wasm`.
    #[arg(long)]
    plugins: PathBuf,
    /// Calls of a round.
    #[arg(long, default_value_t = 20_000)]
    calls: u32,
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Nodes of the fleet that is measured as a whole.
    #[arg(long, default_value_t = 50)]
    nodes: u16,
    /// Seconds in which that fleet calls, publishes, and waits: each.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Measured {
    case: String,
    metric: String,
    /// As in the figures of `weir-bench`.
    unit: &'static str,
    /// One value a round.
    rounds: Vec<f64>,
    /// The baseline's value, beside each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    baselines: Vec<f64>,
    /// What the ratio should not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
}

impl Measured {
    fn new(case: impl Into<String>, metric: impl Into<String>, unit: &'static str, rounds: Vec<f64>) -> Self {
        let (case, metric) = (case.into(), metric.into());
        Self { case, metric, unit, rounds, baselines: Vec::new(), target: None }
    }

    fn beside(self, baselines: Vec<f64>) -> Self {
        Self { baselines, ..self }
    }

    fn at_most(self, target: f64) -> Self {
        Self { target: Some(target), ..self }
    }
}

fn main() -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match Arguments::parse().task {
        Task::Echo { server } => runtime.block_on(calls::echo(server)),
        Task::Measure(measure) => {
            let measured = runtime.block_on(async {
                let mut measured = calls::measure(&measure).await?;
                measured.extend(nodes::measure(&measure).await?);
                anyhow::Ok(measured)
            })?;
            for measured in measured {
                println!("{}", serde_json::to_string(&measured)?);
            }
            Ok(())
        }
    }
}

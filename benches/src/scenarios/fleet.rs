//! Mains on several machines, over bridges and a NATS server. A program of its own measures (`benches/fleet`), so that
//! no other figure has a client of NATS in its process. `docs/benchmarks.md` explains the figures.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{Bench, Scenario};
use crate::figure::{Figure, Unit};

pub(crate) const NAME: &str = "fleet";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "calls and events between Mains, over bridges and a NATS server", run };

/// A line of the program.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    case: String,
    metric: String,
    unit: Unit,
    /// One value a round.
    rounds: Vec<f64>,
    /// The baseline's value for each round, if there is a baseline.
    #[serde(default)]
    baselines: Vec<f64>,
    target: Option<f64>,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let programs = bench.fleet.as_ref().context("`--fleet` names no programs")?;
    // Calls of a round, rounds, nodes, and seconds of each work of theirs.
    let [calls, rounds, nodes, seconds] =
        bench.scale.pick(["20000", "5", "50", "10"], ["5000", "3", "50", "3"], ["64", "1", "3", "1"]);
    let mut command = Command::new(&programs.program);
    command.arg("measure").arg("--weir").arg(&programs.weir).arg("--bridge").arg(&programs.bridge);
    command.arg("--server").arg(&programs.server).arg("--plugins").arg(bench.guests.dir());
    command.args(["--calls", calls, "--rounds", rounds, "--nodes", nodes, "--seconds", seconds]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start the program")?;
    ensure!(output.status.success(), "the program ended with {}", output.status);
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| Ok(figure(&serde_json::from_str(line)?))).collect()
}

fn figure(measured: &Measured) -> Figure {
    let Measured { case, metric, unit, rounds, baselines, target } = measured;
    let mut figure = Figure::of_rounds(NAME, case, metric, *unit, rounds);
    if !baselines.is_empty() {
        figure = figure.beside_rounds(rounds, baselines);
    }
    figure.at_most(*target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_is_a_figure() {
        let line = r#"{"case":"1 KiB","metric":"p50","unit":"us","rounds":[4.0,6.0,5.0],"baselines":[2.0,2.0,2.0],"target":2.0}"#;
        let read = figure(&serde_json::from_str(line).unwrap());
        assert_eq!(
            (read.value, read.baseline, read.ratio, read.target),
            (5.0, Some(2.0), Some(2.5), Some(2.0))
        );
        let line = r#"{"case":"50 nodes","metric":"calls","unit":"per second","rounds":[7.0]}"#;
        let read = figure(&serde_json::from_str(line).unwrap());
        assert_eq!((read.value, read.baseline, read.ratio, read.target), (7.0, None, None, None));
    }
}

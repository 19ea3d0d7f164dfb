//! Measures Weir: what its promises are made of, and whether they hold.
//!
//! `cargo xtask bench` builds this program and the extensions that it runs, and passes its arguments on.

#![expect(clippy::print_stdout, reason = "the figures are for whoever runs it")]

mod docs;
mod figure;
mod guests;
mod machine;
mod scale;
mod scenarios;
mod statistics;
mod table;
mod usage;

use std::{fs::File, path::PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use self::{
    figure::write_json,
    guests::Guests,
    machine::Machine,
    scale::Scale,
    scenarios::{Bench, SCENARIOS},
};

/// Measures Weir.
#[derive(Debug, Parser)]
struct Arguments {
    /// How long to measure.
    #[arg(long, value_enum, default_value_t = Scale::Full)]
    scale: Scale,
    /// Run only this scenario; can be given more than once.
    #[arg(long, value_name = "SCENARIO")]
    only: Vec<String>,
    /// Write the figures here, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures into this page, too, where it has marks for the scenario.
    #[arg(long, value_name = "FILE")]
    docs: Option<PathBuf>,
    /// Where the extensions and hooks are.
    #[arg(long, value_name = "DIRECTORY")]
    guests: PathBuf,
    /// Where the same hooks are as programs of this machine.
    #[arg(long, value_name = "DIRECTORY")]
    native: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    for name in &arguments.only {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        ensure!(names.contains(&name.as_str()), "there is no scenario `{name}`: {}", names.join(", "));
    }
    // Opened first: a measurement that cannot be kept is not begun.
    let json = arguments
        .json
        .map(|path| File::create(&path).with_context(|| format!("cannot write `{}`", path.display())));
    let mut json = json.transpose()?;
    // Before a run: its own work is part of the load after it.
    let machine = Machine::read()?;
    if let Some(disturbance) = machine.disturbance() {
        eprintln!("warning: {disturbance}");
    }
    let bench = Bench { scale: arguments.scale, guests: Guests::new(arguments.guests, arguments.native)? };
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    for scenario in SCENARIOS.iter().filter(|scenario| wanted(scenario.name)) {
        eprintln!("{}: {}", scenario.name, scenario.about);
        let figures = (scenario.run)(&bench).with_context(|| format!("scenario `{}`", scenario.name))?;
        println!("{}", table::terminal(&figures));
        if let Some(json) = &mut json {
            write_json(json, &figures)?;
        }
        if let Some(page) = &arguments.docs {
            docs::write(page, scenario.name, &figures, bench.scale, &machine)?;
        }
    }
    Ok(())
}

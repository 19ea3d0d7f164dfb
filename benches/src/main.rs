//! Measures Weir, and whether its promises hold.
//!
//! `cargo xtask bench` builds this program and its extensions, and passes its arguments on.

#![expect(clippy::print_stdout, reason = "the figures are for the user")]

mod figure;
mod guests;
mod machine;
mod page;
mod process;
mod programs;
mod scenarios;
mod table;

use std::{fs::File, path::PathBuf, time::Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use self::{
    figure::{read_json, verify, write_json},
    guests::Guests,
    machine::{Emulator, Machine},
    page::Entry,
    scenarios::{Bench, Fleet, SCENARIOS, Scale, fleet, footprint, http_server},
};

/// Measures Weir.
#[derive(Debug, Parser)]
struct Arguments {
    /// How long to measure.
    #[arg(long, value_enum, default_value_t = Scale::Full)]
    scale: Scale,
    /// Run only this scenario. Can be given more than once.
    #[arg(long, value_name = "SCENARIO")]
    only: Vec<String>,
    /// Write the figures to this file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the figures into the record beside this page, too, and make the page from it.
    #[arg(long, value_name = "FILE")]
    docs: Option<PathBuf>,
    /// Measure nothing: show how the figures of two files differ, the worst first.
    #[arg(long, num_args = 2, value_names = ["FILE", "FILE"])]
    compare: Vec<PathBuf>,
    /// Measure nothing: make this page from the record beside it.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The directory of the extensions and hooks.
    #[arg(long, value_name = "DIRECTORY", required_unless_present_any = ["compare", "page"])]
    guests: Option<PathBuf>,
    /// The directory of the same hooks as programs of this machine.
    #[arg(long, value_name = "DIRECTORY", required_unless_present_any = ["compare", "page"])]
    native: Option<PathBuf>,
    /// The program of Main as on a device.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["compare", "page"])]
    device: Option<PathBuf>,
    /// What runs that program, if it is for another processor: the user mode of qemu with its arguments. Only the scenario
    /// `footprint` can be measured so.
    #[arg(long, value_name = "COMMAND", requires = "target")]
    emulator: Option<String>,
    /// The machine that the program is for, as in `aarch64-unknown-linux-gnu`.
    #[arg(long, value_name = "TRIPLE", requires = "emulator")]
    target: Option<String>,
    /// The program that measures a fleet, `weir`, `weir-nats` and `nats-server`. Without them that is left out.
    #[arg(long, num_args = 4, value_names = ["PROGRAM", "WEIR", "BRIDGE", "SERVER"])]
    fleet: Vec<PathBuf>,
    /// The command `wasmtime`, beside which a server is measured. Without it that is left out.
    #[arg(long, value_name = "FILE")]
    wasmtime: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let Some((programs::BESIDE, beside)) = arguments.split_first().map(|(one, rest)| (&**one, rest)) {
        return programs::run(beside);
    }
    let arguments = Arguments::parse();
    if let [one, other] = arguments.compare.as_slice() {
        print!("{}", table::differences(&read_json(one)?, &read_json(other)?));
        return Ok(());
    }
    if let Some(page) = &arguments.page {
        return page::make(page);
    }
    let Arguments { guests: Some(guests), native: Some(native), device: Some(device), .. } = &arguments
    else {
        bail!("`--guests`, `--native` and `--device` say where the programs are");
    };
    let guests = Guests::new(guests.clone(), native.clone())?;
    let programs = <[PathBuf; 4]>::try_from(arguments.fleet.clone()).ok();
    let fleet = programs.map(|[program, weir, bridge, server]| Fleet { program, weir, bridge, server });
    let emulator = arguments.emulator.as_deref().zip(arguments.target.as_deref());
    let emulator = emulator.map(|(command, target)| Emulator::new(target, command)).transpose()?;
    ensure!(
        emulator.is_none() || arguments.only == [footprint::NAME],
        "only `{}` can be measured with an emulator: choose it with `--only`",
        footprint::NAME
    );
    let bench = Bench {
        scale: arguments.scale,
        guests,
        device: device.clone(),
        emulator,
        fleet,
        wasmtime: arguments.wasmtime.clone(),
    };
    measure(&arguments, &bench)
}

/// Runs the chosen scenarios. A missed target is reported, and is no error.
fn measure(arguments: &Arguments, bench: &Bench) -> Result<()> {
    for name in &arguments.only {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        ensure!(names.contains(&name.as_str()), "there is no scenario `{name}`: {}", names.join(", "));
    }
    // Opened first, so that no measurement is lost for want of a file.
    let create =
        |path: &PathBuf| File::create(path).with_context(|| format!("cannot write `{}`", path.display()));
    let mut json = arguments.json.as_ref().map(create).transpose()?;
    // The machine is looked at before the run, which adds to the load.
    let machine = Machine::read()?;
    if let Some(disturbance) = machine.disturbance() {
        eprintln!("warning: {disturbance}");
    }
    let wanted = |name: &str| match arguments.only.as_slice() {
        [] if name == fleet::NAME => bench.fleet.is_some(),
        [] if name == http_server::NAME => bench.wasmtime.is_some(),
        [] => true,
        only => only.iter().any(|only| only == name),
    };
    let wanted: Vec<_> = SCENARIOS.iter().filter(|scenario| wanted(scenario.name)).collect();
    let mut missed = String::new();
    for scenario in &wanted {
        eprintln!("{}: {}", scenario.name, scenario.about);
        let start = Instant::now();
        let figures = (scenario.run)(bench).with_context(|| format!("scenario `{}`", scenario.name))?;
        verify([scenario.name], &figures)?;
        println!("{}", table::terminal(&figures));
        eprintln!("  took {:.0} s", start.elapsed().as_secs_f64());
        missed += &table::missed(&figures);
        if let Some(json) = &mut json {
            write_json(json, &figures)?;
        }
        if let Some(page) = &arguments.docs {
            page::update(page, Entry::new(scenario.name, bench, &machine, figures))?;
        }
    }
    // The file must now have figures of every scenario.
    if let Some(path) = &arguments.json {
        verify(wanted.iter().map(|scenario| scenario.name), &read_json(path)?)?;
    }
    if bench.scale != Scale::Smoke {
        eprint!("{missed}");
    }
    Ok(())
}

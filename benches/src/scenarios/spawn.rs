//! The time to start something that ends at once: an extension, a command, a task in a guest, a process.
//! `docs/benchmarks.md` explains the figures.

mod extension;
mod processes;
mod tasks;

use std::time::Duration;

use anyhow::{Result, ensure};
use weir_host::hooks::HookCall;

use self::{extension::Brief, processes::Processes, tasks::Tasks};
use super::{Bench, Scenario, one_hook::OneHook, progress};
use crate::{
    figure::{Figure, Unit},
    scale::Scale,
    statistics::microseconds,
};

const NAME: &str = "spawn";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "starting what ends at once: extensions, commands, tasks", run };

/// The target for an extension, over a process. It is started like a task of `tokio`'s: on the thread that
/// runs it.
const EXTENSION: f64 = 1.0 / 25.0;

/// The target for a command, over a process.
const COMMAND: f64 = 1.0 / 40.0;

const START_TO_END: &str = "start to end";

const EMPTY: &str = "empty";

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let (scale, rounds) = (bench.scale, bench.scale.pick(7, 3, 1));
    let command = OneHook::start(&bench.guests, EMPTY)?;
    let processes = Processes::new(&bench.guests);
    let tasks = Tasks::start(&bench.guests)?;
    let mut figures = extensions(bench, &processes, &tasks, rounds)?;
    let in_guests = tasks.measure(scale, rounds)?;
    command.settle(scale, HookCall::new())?;
    figures.extend(commands(&command, &processes, scale, rounds)?);
    figures.extend(in_guests);
    Ok(figures)
}

fn extensions(bench: &Bench, processes: &Processes, tasks: &Tasks, rounds: usize) -> Result<Vec<Figure>> {
    let scale = bench.scale;
    let (starts, spawns) = (scale.pick(2000, 500, 5), scale.pick(500_000, 200_000, 1000));
    let brief = Brief::start(&bench.guests)?;
    let (mut thread, mut instance, mut worker) = (Vec::new(), Vec::new(), Vec::new());
    let (mut task, mut process) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        progress("extensions", round, rounds);
        let (whole, of_instances) = brief.by_a_thread(starts)?;
        thread.push(each(whole, starts));
        instance.push(each(of_instances, starts));
        worker.push(each(brief.on_the_worker(starts)?, starts));
        task.push(each(tasks.native(spawns, 1)?, spawns));
        process.push(processes.round(scale)?);
    }
    let figure = |case, metric, rounds: &[f64]| {
        let figure = Figure::of_rounds(NAME, case, metric, Unit::Microseconds, rounds);
        figure.beside_rounds(rounds, &process)
    };
    let [by_thread, on_worker] = ["an extension, by a plain thread", "an extension, on the worker"];
    Ok(vec![
        figure(by_thread, START_TO_END, &thread),
        figure(by_thread, "time of the instance", &instance),
        figure(on_worker, START_TO_END, &worker).at_most(EXTENSION),
        figure("tokio::spawn", START_TO_END, &task),
    ])
}

fn commands(command: &OneHook, processes: &Processes, scale: Scale, rounds: usize) -> Result<Vec<Figure>> {
    let runs = scale.pick(10_000, 5000, 5);
    let (mut whole, mut hook, mut process) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        progress("commands", round, rounds);
        let (mut time, mut of_hook) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..runs {
            let (whole, run) = command.run(HookCall::new())?;
            time += whole;
            of_hook += run.duration;
        }
        whole.push(each(time, runs));
        hook.push(each(of_hook, runs));
        process.push(processes.round(scale)?);
    }
    ensure!(hook.iter().zip(&whole).all(|(hook, whole)| hook <= whole), "a hook took longer than its run");
    let figure = |metric, rounds: &[f64]| {
        let figure = Figure::of_rounds(NAME, "a command", metric, Unit::Microseconds, rounds);
        figure.beside_rounds(rounds, &process)
    };
    Ok(vec![figure("time of the hook", &hook).at_most(COMMAND), figure("time per run", &whole)])
}

/// Microseconds.
fn each(time: Duration, count: u32) -> f64 {
    microseconds(time) / f64::from(count)
}

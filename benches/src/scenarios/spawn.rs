//! The time to start something that ends at once: an extension, a command, a task in a guest, a process.
//! `docs/benchmarks.md` explains the figures.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use weir_host::{
    Control,
    blocking::{BlockingError, wait},
    config::CpuShare,
    control::{ControlError, ExtensionState, ExtensionStatus},
    hooks::HookCall,
};

use super::{
    Bench, Scale, Scenario,
    calls::Worker,
    embedder::{Embedder, builder, on_the_worker, patient},
    one_hook::OneHook,
    progress,
};
use crate::{
    figure::{Figure, Unit, microseconds},
    guests::{Guests, MUCH_FUEL},
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
    let processes = Processes(bench.guests.native(EMPTY));
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
        worker.push(each(brief.0.timed(&[starts])?, starts));
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

/// The microseconds of one of `count`.
fn each(time: Duration, count: u32) -> f64 {
    microseconds(time) / f64::from(count)
}

const BRIEF: &str = "brief";

/// A Main with an extension that ends at once, and another that holds the program of both.
#[derive(Debug)]
struct Brief(Embedder);

impl Brief {
    fn start(guests: &Guests) -> Result<Self> {
        let mut extensions = Vec::new();
        for id in [BRIEF, "holder"] {
            let mut extension = guests.extension(id, BRIEF)?;
            extension.limits.cpu_share = CpuShare::WHOLE;
            extension.autostart = id != BRIEF;
            if extension.autostart {
                extension.grants.env.insert("STAY".to_owned(), "1".to_owned());
            }
            extensions.push(extension);
        }
        let (starter, later) = on_the_worker(|control: Control, numbers| async move {
            let [count] = *numbers else { bail!("one number is needed") };
            started(&control, count).await
        })?;
        let main = Embedder::start(builder(extensions).serve(starter))?;
        later.get_or_init(|| main.control().clone());
        main.running("holder")?;
        // The first read from disk is not part of a start. Later starts check the ending.
        let _ended = wait(main.control().start(BRIEF));
        Ok(Self(main))
    }

    /// Starts by a waiting plain thread. Returns their time, and the part in which instances were made and
    /// ran.
    fn by_a_thread(&self, count: u32) -> Result<(Duration, Duration)> {
        let control = self.0.control();
        let before = control.status(BRIEF)?;
        let start = Instant::now();
        for _ in 0..count {
            match wait(control.start(BRIEF)) {
                Err(BlockingError::Call(ControlError::NotStarted { .. })) => {}
                other => bail!("it did not end by itself: {other:?}"),
            }
        }
        let time = start.elapsed();
        let after = ended(control, before.restarts, count)?;
        Ok((time, after.cpu - before.cpu))
    }
}

async fn started(control: &Control, count: u32) -> Result<Duration> {
    let before = control.status(BRIEF)?.restarts;
    let start = Instant::now();
    for _ in 0..count {
        // The extension ends without becoming ready, so the start reports that.
        match control.start(BRIEF).await {
            Err(ControlError::NotStarted { .. }) => {}
            other => bail!("it did not end by itself: {other:?}"),
        }
    }
    let time = start.elapsed();
    ended(control, before, count)?;
    Ok(time)
}

/// The status of the extension. Fails unless it has been started this often, and has ended well each time.
fn ended(control: &Control, before: u64, count: u32) -> Result<ExtensionStatus> {
    let status = control.status(BRIEF)?;
    let restarts = status.restarts - before;
    ensure!(restarts == u64::from(count), "it was started {restarts} times, not {count}");
    ensure!(
        status.state == ExtensionState::Stopped && status.failures.is_empty(),
        "it is {:?}: {:?}",
        status.state,
        status.failures.last()
    );
    Ok(status)
}

/// Starts a program by `fork` and `exec`.
#[derive(Debug)]
struct Processes(PathBuf);

impl Processes {
    /// The microseconds of one process. Its output is not read, which would add to its time.
    fn round(&self, scale: Scale) -> Result<f64> {
        let count = scale.pick(500, 200, 5);
        let start = Instant::now();
        for _ in 0..count {
            let mut command = Command::new(&self.0);
            command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let status = command.status().with_context(|| format!("cannot run `{}`", self.0.display()))?;
            ensure!(status.success(), "`{}` ended with {status}", self.0.display());
        }
        Ok(each(start.elapsed(), count))
    }
}

/// Names, tasks spawned before each wait, and tasks in all by scale: in a guest, and natively.
const CASES: [(&str, u32, [u32; 3], [u32; 3]); 2] = [
    ("a task in a guest, one after the other", 1, [30_000, 15_000, 100], [500_000, 200_000, 1000]),
    ("a task in a guest, 1000 at once", 1000, [100_000, 50_000, 1000], [500_000, 200_000, 1000]),
];

/// Tasks that end at once: inside a guest, on the SDK's executor, and natively.
#[derive(Debug)]
struct Tasks {
    main: Embedder,
    worker: Worker,
}

impl Tasks {
    fn start(guests: &Guests) -> Result<Self> {
        let mut spawner = guests.extension("spawner", "spawner")?;
        spawner.fulfills = vec!["spawner@1".parse()?];
        spawner.limits.cpu_share = CpuShare::WHOLE;
        spawner.limits.fuel_per_message = MUCH_FUEL;
        Ok(Self { main: Embedder::start(builder(vec![spawner]))?, worker: Worker::start()? })
    }

    fn measure(&self, scale: Scale, rounds: usize) -> Result<Vec<Figure>> {
        CASES.into_iter().map(|case| self.compare(case, scale, rounds)).collect()
    }

    /// Measures tasks in the guest and on the native thread in turns.
    fn compare(
        &self,
        (case, at_once, in_guest, native): (&str, u32, [u32; 3], [u32; 3]),
        scale: Scale,
        rounds: usize,
    ) -> Result<Figure> {
        let pick = |[full, quick, smoke]: [u32; 3]| scale.pick(full, quick, smoke);
        let (in_guest, native) = (pick(in_guest), pick(native));
        let (mut guest, mut beside) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            progress(case, round, rounds);
            guest.push(1e3 * each(self.in_guest(in_guest, at_once)?, in_guest));
            beside.push(1e3 * each(self.native(native, at_once)?, native));
        }
        let figure = Figure::of_rounds(NAME, case, "time per task", Unit::Nanoseconds, &guest);
        Ok(figure.beside_rounds(&guest, &beside))
    }

    /// The time of the whole call. The call's own cost vanishes beside so many tasks.
    fn in_guest(&self, tasks: u32, at_once: u32) -> Result<Duration> {
        let request = serde_json::to_vec(&(tasks / at_once, at_once))?;
        let start = Instant::now();
        let answer = wait(self.main.client().call_with("spawner@1", "spawn", request, patient()))?;
        let time = start.elapsed();
        let ended: u32 = serde_json::from_slice(&answer)?;
        ensure!(ended == tasks, "of {tasks} tasks {ended} have ended");
        Ok(time)
    }

    fn native(&self, tasks: u32, at_once: u32) -> Result<Duration> {
        let (time, ended) = self.worker.run(spawn(tasks / at_once, at_once))??;
        ensure!(ended == tasks, "of {tasks} tasks {ended} have ended");
        Ok(time)
    }
}

async fn spawn(times: u32, at_once: u32) -> Result<(Duration, u32)> {
    let start = Instant::now();
    let mut ended = 0;
    for _ in 0..times {
        let spawned: Vec<_> = (0..at_once).map(|_| tokio::spawn(async { 1 })).collect();
        for task in spawned {
            ended += task.await?;
        }
    }
    Ok((start.elapsed(), ended))
}

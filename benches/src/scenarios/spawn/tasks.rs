//! Tasks that end at once: inside a guest, on the SDK's executor, and natively.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use weir_host::{CallOptions, Config, Main, MainConfig, blocking::wait, config::CpuShare};

use super::{NAME, each};
use crate::{
    figure::{Figure, Unit},
    guests::{Guests, MUCH_FUEL},
    scale::Scale,
    scenarios::{
        client::ensure_started,
        progress,
        tasks::{PATIENCE, Worker},
    },
};

/// Tasks spawned before each wait, and tasks in all: in a guest, and natively.
const CASES: [(&str, u32, [u32; 3], [u32; 3]); 2] = [
    ("a task in a guest, one after the other", 1, [30_000, 15_000, 100], [500_000, 200_000, 1000]),
    ("a task in a guest, 1000 at once", 1000, [100_000, 50_000, 1000], [500_000, 200_000, 1000]),
];

#[derive(Debug)]
pub(super) struct Tasks {
    main: Main,
    worker: Worker,
}

impl Tasks {
    pub(super) fn start(guests: &Guests) -> Result<Self> {
        let mut spawner = guests.extension("spawner", "spawner")?;
        spawner.fulfills = vec!["spawner@1".parse()?];
        spawner.limits.cpu_share = CpuShare::WHOLE;
        spawner.limits.fuel_per_message = MUCH_FUEL;
        let config = Config::new(MainConfig::default(), vec![spawner]);
        let main = wait(Main::builder(config).start())?;
        ensure_started(main.control())?;
        Ok(Self { main, worker: Worker::start()? })
    }

    pub(super) fn measure(&self, scale: Scale, rounds: usize) -> Result<Vec<Figure>> {
        CASES.into_iter().map(|case| self.compare(case, scale, rounds)).collect()
    }

    /// The guest and the thread in turns.
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

    /// The whole call. Its own cost vanishes beside so many tasks.
    fn in_guest(&self, tasks: u32, at_once: u32) -> Result<Duration> {
        let request = serde_json::to_vec(&(tasks / at_once, at_once))?;
        let options = CallOptions::default().timeout(PATIENCE);
        let start = Instant::now();
        let answer = wait(self.main.client().call_with("spawner@1", "spawn", request, options))?;
        let time = start.elapsed();
        let ended: u32 = serde_json::from_slice(&answer)?;
        ensure!(ended == tasks, "of {tasks} tasks {ended} have ended");
        Ok(time)
    }

    pub(super) fn native(&self, tasks: u32, at_once: u32) -> Result<Duration> {
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

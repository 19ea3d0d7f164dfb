//! The time until ten extensions are ready: all compiled, and all from the cache.
//!
//! `docs/benchmarks.md` explains the figures.

use std::{fs, io::ErrorKind, path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use tempfile::TempDir;
use weir_host::{Config, Main, blocking::wait};

use super::{Bench, Scenario, embedder::ensure_running, progress};
use crate::{
    figure::{Figure, Unit, median, microseconds},
    guests::Guests,
};

const NAME: &str = "startup";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "Main with ten extensions, compiled and from the cache", run };

/// The target for a start from the cache, over one with compiling.
const CACHED: f64 = 0.1;

/// Milliseconds of a start with an empty cache, and of the next one.
#[derive(Clone, Debug, Default)]
struct Starts {
    cold: Vec<f64>,
    cached: Vec<f64>,
}

impl Starts {
    fn figure(&self, case: String) -> Figure {
        let figure = Figure::of_rounds(NAME, case, "start from the cache", Unit::Milliseconds, &self.cached);
        figure.beside_rounds(&self.cached, &self.cold)
    }
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let scale = bench.scale;
    let (rounds, repeats) = (scale.pick(5, 1, 1), scale.pick(5, 3, 1));
    let site = Site::new(&bench.guests, scale.pick(10, 10, 2))?;
    let (mut together, mut nothing) = (Starts::default(), Vec::new());
    let mut alone = vec![Starts::default(); site.extensions.len()];
    for round in 0..rounds {
        progress("starts", round, rounds);
        site.clear_cache()?;
        together.cold.push(all(&site)?);
        together.cached.push(median((0..repeats).map(|_| all(&site)).collect::<Result<_>>()?));
        site.clear_cache()?;
        let (_, cold) = one_by_one(&site)?;
        let cached = (0..repeats).map(|_| one_by_one(&site)).collect::<Result<Vec<_>>>()?;
        nothing.push(median(cached.iter().map(|(main, _)| *main).collect()));
        for (place, (starts, cold)) in alone.iter_mut().zip(cold).enumerate() {
            starts.cold.push(cold);
            let cached = cached.iter().filter_map(|(_, cached)| cached.get(place).copied());
            starts.cached.push(median(cached.collect()));
        }
    }
    let count = site.extensions.len();
    let mut figures = vec![together.figure(format!("{count} extensions")).at_most(CACHED)];
    figures.push(Figure::of_rounds(NAME, "Main alone", "start", Unit::Milliseconds, &nothing));
    for (extension, starts) in site.extensions.iter().zip(alone) {
        figures.push(starts.figure(format!("{}, {:.0} KiB", extension.name, extension.kibibytes)));
    }
    Ok(figures)
}

/// Milliseconds until all extensions that start with Main are ready.
fn all(site: &Site) -> Result<f64> {
    let builder = Main::builder(site.config()?);
    let start = Instant::now();
    let main = wait(builder.start())?;
    let time = milliseconds(start);
    ensure_running(main.control())?;
    main.shutdown_blocking()?;
    Ok(time)
}

/// Milliseconds until Main is up without extensions, and then until each is ready, one after the other.
fn one_by_one(site: &Site) -> Result<(f64, Vec<f64>)> {
    let mut config = site.config()?;
    config.extensions.iter_mut().for_each(|extension| extension.autostart = false);
    let builder = Main::builder(config);
    let start = Instant::now();
    let main = wait(builder.start())?;
    let alone = milliseconds(start);
    let control = main.control();
    let started = site.extensions.iter().map(|extension| {
        let start = Instant::now();
        wait(control.start(&extension.name)).with_context(|| format!("starting `{}`", extension.name))?;
        Ok(milliseconds(start))
    });
    let started = started.collect::<Result<_>>()?;
    main.shutdown_blocking()?;
    Ok((alone, started))
}

fn milliseconds(since: Instant) -> f64 {
    microseconds(since.elapsed()) / 1000.0
}

/// A directory with different components, and a cache that can be emptied.
#[derive(Debug)]
struct Site {
    dir: TempDir,
    extensions: Vec<Extension>,
}

#[derive(Debug)]
struct Extension {
    name: String,
    /// The size of its component.
    kibibytes: f64,
}

impl Site {
    fn new(guests: &Guests, count: usize) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        fs::create_dir(dir.path().join("data")).context("cannot make a directory")?;
        let mut site = Self { dir, extensions: Vec::new() };
        for extension in site.configured()?.extensions.into_iter().take(count) {
            let name = extension.id.to_string();
            // A name can end with a number, as in `bench-guest-2`.
            let numbered =
                name.rsplit_once('-').and_then(|(built, number)| Some((built, number.parse().ok()?)));
            let (built, number) = numbered.map_or((&*name, None), |(built, number)| (built, Some(number)));
            let built = guests.component(built);
            let mut component =
                fs::read(&built).with_context(|| format!("cannot read `{}`", built.display()))?;
            component.extend(number.map(number_section).unwrap_or_default());
            let file = extension.component.path().context("it comes from no file")?;
            fs::write(file, &component).context("cannot write a component")?;
            let kibibytes = f64::from(u32::try_from(component.len())?) / 1024.0;
            site.extensions.push(Extension { name, kibibytes });
        }
        Ok(site)
    }

    fn config(&self) -> Result<Config> {
        let mut config = self.configured()?;
        config.main.cache_dir = Some(self.cache());
        config.extensions.truncate(self.extensions.len());
        Ok(config)
    }

    fn clear_cache(&self) -> Result<()> {
        match fs::remove_dir_all(self.cache()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("cannot empty the cache"),
            _ => Ok(()),
        }
    }

    fn configured(&self) -> Result<Config> {
        Ok(weir_host::parse(include_str!("startup/ten.toml"), "ten.toml", self.dir.path())?)
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }
}

/// A custom section of the binary format with a number as its content: id, size, length and text of the name,
/// number. It makes a component differ from the others.
fn number_section(number: u8) -> Vec<u8> {
    [&[0, 8, 6], b"number".as_slice(), &[number]].concat()
}

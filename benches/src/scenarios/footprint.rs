//! Memory of Main with 7 extensions and with many waiting ones, beside a thread with a runtime for each, and on an
//! emulated processor. `docs/benchmarks.md` explains the figures.

mod mains;
mod mappings;

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::Result;
use procfs_core::process::MemoryMap;

use super::{
    Bench, Scale, Scenario,
    device::{Device, SETTLING, Site, wait_until},
    progress,
};
use crate::{
    figure::{Figure, Unit},
    process::Memory,
};

pub(crate) const NAME: &str = "footprint";

pub(super) const SCENARIO: Scenario = Scenario {
    name: NAME,
    about: "memory of Main with 7 extensions, with many, and of queued messages",
    run,
};

/// Private memory that Main may have with 7 extensions: 6 MB, in MiB.
const ALLOWED_OF_SEVEN: f64 = 6e6 / 1024.0 / 1024.0;

#[derive(Clone, Copy, Debug)]
struct Counts {
    few: u32,
    many: u32,
    /// `None` on an emulated processor. There, nothing native is measured beside Main, either.
    most: Option<u32>,
}

/// What a process has.
#[derive(Debug)]
struct Seen {
    threads: f64,
    memory: Memory,
    mappings: Vec<MemoryMap>,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    // On a device Main is alone: a program file that others have mapped, too, would not count as its own.
    let site = Site::new(bench, bench.scale != Scale::Smoke)?;
    let counts = counts(bench);
    let rounds = bench.scale.pick(3, 1, 1);
    let (mut mains, mut others) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        progress("starting and waiting", round, rounds);
        let (main, other) = look(&site, bench, counts)?;
        mains.push(main);
        others.extend(other);
    }
    let mut figures = figures(&mains, &others, counts);
    figures.extend(mappings::figures(&mains, counts.few, counts.many));
    if counts.most.is_some() {
        progress("queued messages", 0, 1);
        figures.extend(mains::queued_messages(&site, bench)?);
    }
    Ok(figures)
}

/// How many extensions Mains have: 10,000 at most, or as many thousands as the kernel's limit of mappings allows.
fn counts(bench: &Bench) -> Counts {
    /// Mappings of an extension, and of all else.
    const MAPPINGS: (u32, u32) = (7, 2_003);

    if bench.emulator.is_some() {
        // No more than fit addresses of 32 bits, of which each memory reserves 10 MiB.
        return Counts { few: 20, many: 200, most: None };
    }
    let allowed =
        fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
    let fit = allowed.map_or(u32::MAX, |allowed: u32| allowed.saturating_sub(MAPPINGS.1) / MAPPINGS.0);
    let wanted = bench.scale.pick(10_000, 10_000, 30);
    // If not even 2000 fit, Main refuses to start.
    let most = if fit < wanted { (fit / 1000 * 1000).max(2000) } else { wanted };
    if most < wanted {
        eprintln!("  {most} extensions, and not {wanted}: `vm.max_map_count` has no room for more");
    }
    let [few, many] = bench.scale.pick([100, 1000], [100, 1000], [10, 20]);
    Counts { few, many, most: Some(most) }
}

/// Looks at Mains with 7, with few and with many extensions when they are at rest. If `most` is given, looks also at
/// one with most, and at native processes with 7 and with many threads.
fn look(site: &Site, bench: &Bench, counts: Counts) -> Result<([Seen; 3], Option<[Seen; 3]>)> {
    let Counts { few, many, most } = counts;
    let mut seven = mains::seven(site)?;
    let mut mains = [site.idle(few)?, site.idle(many)?];
    let mut others = match most {
        Some(most) => Some([site.idle(most)?, site.native("threads", 7)?, site.native("threads", many)?]),
        None => None,
    };
    wait_until(Instant::now() + bench.scale.pick(SETTLING, SETTLING, Duration::ZERO));
    let [with_few, with_many] = &mains;
    let seen = [Seen::of(&seven)?, Seen::of(with_few)?, Seen::of(with_many)?];
    let beside = match &others {
        Some([with_most, native_seven, native_many]) => {
            Some([Seen::of(with_most)?, Seen::of(native_seven)?, Seen::of(native_many)?])
        }
        None => None,
    };
    mains::ensure_answers(&mut seven)?;
    let answering = mains.iter_mut().zip([few, many]);
    let others = others.iter_mut().flatten().zip([most.unwrap_or_default(), 7, many]);
    answering.chain(others).try_for_each(|(device, count)| device.ensure_answers(count))?;
    Ok((seen, beside))
}

impl Seen {
    fn of(device: &Device) -> Result<Self> {
        let process = device.process();
        let threads = u32::try_from(process.threads()?.len())?.into();
        let mappings = process.mappings()?;
        Ok(Self { threads, memory: Memory::of(&mappings), mappings })
    }

    fn private(&self) -> f64 {
        self.memory.private()
    }
}

fn figures(mains: &[[Seen; 3]], others: &[[Seen; 3]], counts: Counts) -> Vec<Figure> {
    let Counts { few, many, most } = counts;
    let [seven, with_few, with_many] = columns(mains);
    let [with_most, native_seven, native_many] = columns(others);
    let mut figures = rows("7 extensions", &seven, &native_seven);
    figures.extend(rows(&format!("{many} idle"), &with_many, &native_many));
    let each = |greater: &[&Seen], count: u32| {
        let pairs = greater.iter().zip(&with_few);
        let each: Vec<_> =
            pairs.map(|(more, less)| (more.private() - less.private()) / f64::from(count - few)).collect();
        let case = format!("from {few} to {count} idle");
        Figure::of_rounds(NAME, case, "private, each", Unit::Kibibytes, &each)
    };
    let Some(most) = most else {
        figures.retain(|figure| figure.metric.starts_with("private RSS"));
        figures.push(each(&with_many, many));
        return figures;
    };
    figures.extend(rows(&format!("{most} idle"), &with_most, &[]));
    for (greater, count) in [(&with_many, many), (&with_most, most)] {
        figures.push(each(greater, count).at_most(32.0).stretch(24.0));
    }
    // In the Main with seven, threads of the pool that opened directories may not have ended yet.
    let pairs = with_most.iter().zip(&seven);
    let threads: Vec<_> = pairs.map(|(most, seven)| (most.threads - seven.threads).max(0.0)).collect();
    let case = format!("from 7 to {most}");
    figures.push(Figure::of_rounds(NAME, case, "threads more", Unit::Count, &threads).at_most(0.0));
    let seven: Vec<_> = seven.iter().map(|seven| seven.private() / 1024.0).collect();
    let figure = Figure::of_rounds(NAME, "7 extensions", "private RSS, of 6 MB", Unit::Mebibytes, &seven);
    figures.push(figure.beside(ALLOWED_OF_SEVEN).at_most(1.0));
    figures
}

/// The rounds of each of three processes.
fn columns(rounds: &[[Seen; 3]]) -> [Vec<&Seen>; 3] {
    [0, 1, 2].map(|place| rounds.iter().filter_map(|round| round.get(place)).collect())
}

/// The rows of a case: its threads, each kind of memory, and the parts of private memory.
fn rows(case: &str, rounds: &[&Seen], native: &[&Seen]) -> Vec<Figure> {
    type Of = fn(&Seen) -> f64;
    let row = |metric, unit, of: Of| {
        Figure::compared((NAME, case), metric, unit, (rounds, native), |seen| of(seen))
    };
    let memory: [(&str, Of); 7] = [
        ("virtual", |seen| seen.memory.address_space / 1024.0),
        ("resident", |seen| seen.memory.resident / 1024.0),
        ("shared", |seen| seen.memory.of_files / 1024.0),
        ("private RSS", |seen| seen.private() / 1024.0),
        ("private RSS, written", |seen| seen.memory.private_dirty / 1024.0),
        ("private RSS, as in a file", |seen| seen.memory.private_clean / 1024.0),
        ("shared RSS", |seen| seen.memory.shared / 1024.0),
    ];
    let threads = row("threads", Unit::Count, |seen| seen.threads);
    let memory = memory.into_iter().map(|(metric, of)| row(metric, Unit::Mebibytes, of));
    [threads].into_iter().chain(memory).collect()
}

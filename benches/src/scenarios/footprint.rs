//! Memory of Main with 7 extensions and with many waiting ones, beside a thread with a runtime for each.
//! `docs/benchmarks.md` explains the figures.

mod emulated;
mod mappings;
mod messages;
mod seven;

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{
    Bench, Scenario,
    client::wait_until,
    device::{Device, SETTLING, Site},
    progress,
};
use crate::{
    figure::{Figure, Unit},
    process::{Mapping, Memory},
    scale::Scale,
};

pub(crate) const NAME: &str = "footprint";

pub(super) const SCENARIO: Scenario = Scenario {
    name: NAME,
    about: "memory of Main with 7 extensions, with many, and of queued messages",
    run,
};

/// Private memory that Main may have with 7 extensions: 6 MB, in KiB.
const ALLOWED_OF_SEVEN: f64 = 6e6 / 1024.0;

#[derive(Clone, Copy, Debug)]
struct Counts {
    few: u32,
    many: u32,
    most: u32,
}

#[derive(Debug)]
struct Processes {
    seven: Device,
    few: Device,
    many: Device,
    most: Device,
    native_seven: Device,
    native_many: Device,
}

#[derive(Clone, Debug)]
struct Round {
    seven: Seen,
    few: Seen,
    many: Seen,
    most: Seen,
    native_seven: Seen,
    native_many: Seen,
}

#[derive(Clone, Debug)]
struct Seen {
    threads: f64,
    memory: Memory,
    mappings: Vec<Mapping>,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    // On a device Main is alone: a program file that others have mapped, too, would not count as its own.
    let site = Site::new(bench, bench.scale != Scale::Smoke)?;
    if bench.emulator.is_some() {
        return emulated::figures(&site, bench.scale);
    }
    let counts = counts(bench);
    let rounds = bench.scale.pick(3, 1, 1);
    let mut seen = Vec::new();
    for round in 0..rounds {
        progress("starting and waiting", round, rounds);
        let mut processes = Processes::start(&site, counts)?;
        wait_until(Instant::now() + bench.scale.pick(SETTLING, SETTLING, Duration::ZERO));
        seen.push(processes.look(counts)?);
    }
    let mut figures = figures(&seen, counts);
    let rounds: Vec<_> = seen.iter().map(|round| [&round.seven, &round.few, &round.many]).collect();
    figures.extend(mappings::figures(&rounds, counts.few, counts.many));
    progress("queued messages", 0, 1);
    figures.extend(messages::figures(&site, bench)?);
    Ok(figures)
}

/// 10,000 at most, or as many thousands as the kernel's limit of mappings allows.
fn counts(bench: &Bench) -> Counts {
    /// Mappings of an extension, and of all else.
    const MAPPINGS: (u32, u32) = (7, 2_003);

    let allowed =
        fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
    let fit = allowed.map_or(u32::MAX, |allowed: u32| allowed.saturating_sub(MAPPINGS.1) / MAPPINGS.0);
    let wanted = bench.scale.pick(10_000, 10_000, 30);
    // If not even 2000 fit, Main refuses to start.
    let most = if fit < wanted { (fit / 1000 * 1000).max(2000) } else { wanted };
    if most < wanted {
        eprintln!("  {most} extensions, and not {wanted}: `vm.max_map_count` has no room for more");
    }
    Counts { few: bench.scale.pick(100, 100, 10), many: bench.scale.pick(1000, 1000, 20), most }
}

impl Processes {
    fn start(site: &Site, counts: Counts) -> Result<Self> {
        Ok(Self {
            seven: seven::start(site)?,
            few: site.idle(counts.few)?,
            many: site.idle(counts.many)?,
            most: site.idle(counts.most)?,
            native_seven: site.native("threads", 7)?,
            native_many: site.native("threads", counts.many)?,
        })
    }

    fn look(&mut self, counts: Counts) -> Result<Round> {
        let round = Round {
            seven: Seen::of(&self.seven)?,
            few: Seen::of(&self.few)?,
            many: Seen::of(&self.many)?,
            most: Seen::of(&self.most)?,
            native_seven: Seen::of(&self.native_seven)?,
            native_many: Seen::of(&self.native_many)?,
        };
        seven::ensure_answers(&mut self.seven)?;
        self.few.ensure_answers(counts.few)?;
        self.many.ensure_answers(counts.many)?;
        self.most.ensure_answers(counts.most)?;
        self.native_seven.ensure_answers(7)?;
        self.native_many.ensure_answers(counts.many)?;
        Ok(round)
    }
}

impl Seen {
    fn of(device: &Device) -> Result<Self> {
        let process = device.process();
        let threads = u32::try_from(process.threads()?.len())?.into();
        let mappings = process.mappings()?;
        Ok(Self { threads, memory: Memory::of(&mappings), mappings })
    }
}

fn figures(rounds: &[Round], counts: Counts) -> Vec<Figure> {
    let Counts { few, many, most } = counts;
    let mut figures = rows("7 extensions", rounds, |round| &round.seven, Some(|round| &round.native_seven));
    figures.extend(rows(
        &format!("{many} idle"),
        rounds,
        |round| &round.many,
        Some(|round| &round.native_many),
    ));
    figures.extend(rows(&format!("{most} idle"), rounds, |round| &round.most, None));
    let each = |round: &Round, greater: &Seen, count: u32| {
        (greater.memory.private() - round.few.memory.private()) / f64::from(count - few)
    };
    let to_many: Vec<_> = rounds.iter().map(|round| each(round, &round.many, many)).collect();
    let to_most: Vec<_> = rounds.iter().map(|round| each(round, &round.most, most)).collect();
    for (count, each) in [(many, to_many), (most, to_most)] {
        let figure = Figure::of_rounds(
            NAME,
            format!("from {few} to {count} idle"),
            "private, each",
            Unit::Kibibytes,
            &each,
        );
        figures.push(figure.at_most(32.0).stretch(24.0));
    }
    // With seven, threads of the pool that opened their directories may not have ended yet.
    let more = |round: &Round| (round.most.threads - round.seven.threads).max(0.0);
    let threads: Vec<_> = rounds.iter().map(more).collect();
    let figure = Figure::of_rounds(NAME, format!("from 7 to {most}"), "threads more", Unit::Count, &threads);
    figures.push(figure.at_most(0.0));
    let seven: Vec<_> = rounds.iter().map(|round| round.seven.memory.private() / 1024.0).collect();
    let figure = Figure::of_rounds(NAME, "7 extensions", "private RSS, of 6 MB", Unit::Mebibytes, &seven);
    figures.push(figure.beside(ALLOWED_OF_SEVEN / 1024.0).at_most(1.0));
    figures
}

type Side = fn(&Round) -> &Seen;

/// The rows of the seed, and the parts of the private rows.
fn rows(case: &str, rounds: &[Round], side: Side, native: Option<Side>) -> Vec<Figure> {
    let row = |metric, unit, of: fn(&Seen) -> f64| {
        let all = |side: Side| rounds.iter().map(|round| of(side(round))).collect::<Vec<_>>();
        let figure = Figure::of_rounds(NAME, case, metric, unit, &all(side));
        match native {
            Some(native) => figure.beside_rounds(&all(side), &all(native)),
            None => figure,
        }
    };
    vec![
        row("threads", Unit::Count, |seen| seen.threads),
        row("virtual", Unit::Mebibytes, |seen| seen.memory.address_space / 1024.0),
        row("resident", Unit::Mebibytes, |seen| seen.memory.resident / 1024.0),
        row("shared", Unit::Mebibytes, |seen| seen.memory.of_files / 1024.0),
        row("private RSS", Unit::Mebibytes, |seen| seen.memory.private() / 1024.0),
        row("private RSS, written", Unit::Mebibytes, |seen| seen.memory.private_dirty / 1024.0),
        row("private RSS, as in a file", Unit::Mebibytes, |seen| seen.memory.private_clean / 1024.0),
        row("shared RSS", Unit::Mebibytes, |seen| seen.memory.shared / 1024.0),
    ]
}

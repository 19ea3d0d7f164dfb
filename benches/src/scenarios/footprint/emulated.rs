//! Memory of Main on an emulated processor: what of the emulator's process is the emulated one.

use std::time::Instant;

use anyhow::Result;

use super::{NAME, Seen, mappings, seven};
use crate::{
    figure::{Figure, Unit},
    scale::Scale,
    scenarios::{
        client::wait_until,
        device::{SETTLING, Site},
        progress,
    },
};

/// How many extensions wait, few and many: no more than fit addresses of 32 bits, of which each memory reserves 10 MiB.
const FEW: u32 = 20;
const MANY: u32 = 200;

#[derive(Debug)]
struct Round {
    seven: Seen,
    few: Seen,
    many: Seen,
}

type Side = fn(&Round) -> &Seen;

pub(super) fn figures(site: &Site, scale: Scale) -> Result<Vec<Figure>> {
    let rounds = scale.pick(3, 1, 1);
    let mut seen = Vec::new();
    for round in 0..rounds {
        progress("starting and waiting", round, rounds);
        seen.push(look(site)?);
    }
    let figure = |case: &str, metric, unit, of: &dyn Fn(&Round) -> f64| {
        Figure::of_rounds(NAME, case, metric, unit, &seen.iter().map(of).collect::<Vec<_>>())
    };
    let mut figures = Vec::new();
    let idle = format!("{MANY} idle");
    let sides: [(&str, Side); 2] = [("7 extensions", |round| &round.seven), (&idle, |round| &round.many)];
    for (case, side) in sides {
        let mebibytes = |metric, of: fn(&Seen) -> f64| {
            figure(case, metric, Unit::Mebibytes, &|round| of(side(round)) / 1024.0)
        };
        figures.push(mebibytes("private RSS", |seen| seen.memory.private()));
        figures.push(mebibytes("private RSS, written", |seen| seen.memory.private_dirty));
        figures.push(mebibytes("private RSS, as in a file", |seen| seen.memory.private_clean));
    }
    let each =
        |round: &Round| (round.many.memory.private() - round.few.memory.private()) / f64::from(MANY - FEW);
    figures.push(figure(&format!("from {FEW} to {MANY} idle"), "private, each", Unit::Kibibytes, &each));
    let rounds: Vec<_> = seen.iter().map(|round| [&round.seven, &round.few, &round.many]).collect();
    figures.extend(mappings::figures(&rounds, FEW, MANY));
    Ok(figures)
}

fn look(site: &Site) -> Result<Round> {
    let mut with_seven = seven::start(site)?;
    let (mut with_few, mut with_many) = (site.idle(FEW)?, site.idle(MANY)?);
    wait_until(Instant::now() + SETTLING);
    let round =
        Round { seven: Seen::of(&with_seven)?, few: Seen::of(&with_few)?, many: Seen::of(&with_many)? };
    seven::ensure_answers(&mut with_seven)?;
    with_few.ensure_answers(FEW)?;
    with_many.ensure_answers(MANY)?;
    Ok(round)
}

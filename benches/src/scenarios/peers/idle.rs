//! Programs that are connected and wait: what they take of Main.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::{APP, NAME, uid};
use crate::{
    figure::{Figure, Unit},
    scenarios::{
        Bench,
        client::wait_until,
        descriptors::allow_descriptors,
        device::{Device, SETTLING, Site},
        idle::Span,
        progress,
    },
};

/// Descriptors of a process beside those of sessions.
const DESCRIPTORS: u64 = 200;

/// Time for what a new session leaves behind.
const SHORT: Duration = Duration::from_millis(500);

/// Sessions in the first look, and in the second.
#[derive(Clone, Copy, Debug)]
struct Counts {
    few: u32,
    many: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waited {
    /// Private memory of one more session, in KiB.
    each: f64,
    span: Span,
}

pub(super) fn figures(bench: &Bench) -> Result<Vec<Figure>> {
    let counts = bench.scale.pick(
        Counts { few: 64, many: 1024 },
        Counts { few: 64, many: 1024 },
        Counts { few: 2, many: 10 },
    );
    allow_descriptors(u64::from(counts.many) + DESCRIPTORS)?;
    let rounds = bench.scale.pick(3, 1, 1);
    let mut waited = Vec::new();
    for round in 0..rounds {
        progress("connecting and waiting", round, rounds);
        waited.push(wait(bench, counts)?);
    }
    Ok(compared(&waited, counts))
}

fn wait(bench: &Bench, Counts { few, many }: Counts) -> Result<Waited> {
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let socket = dir.path().join("peers.sock");
    let config = format!(
        "peer-socket = \"{}\"\n\n[peer.\"{APP}\"]\nuid = {}\nlimits.sessions = {many}\n",
        socket.display(),
        uid()
    );
    let site = Site::new(bench, false)?;
    let main = site.weir(&[], &config, &[])?;
    let connect = |count: u32| {
        Device::start(Command::new(&bench.peer).arg("idle").arg(&socket).args([APP, &count.to_string()]))
    };
    let mut first = connect(few)?;
    wait_until(Instant::now() + bench.scale.pick(SETTLING, SETTLING, Duration::ZERO));
    let before = main.process().memory()?.private();
    let mut rest = connect(many - few)?;
    wait_until(Instant::now() + SHORT);
    let span = Duration::from_millis(bench.scale.pick(10_000, 1000, 200));
    let (start, threads) = (Instant::now(), main.process().threads()?);
    wait_until(start + span);
    let span = Span::between(&threads, &main.process().threads()?, start.elapsed());
    let each = (main.process().memory()?.private() - before) / f64::from(many - few);
    for sessions in [&mut first, &mut rest] {
        ensure!(sessions.ask("")? == "well", "a session has ended");
    }
    Ok(Waited { each, span })
}

fn compared(waited: &[Waited], Counts { few, many }: Counts) -> Vec<Figure> {
    let each: Vec<_> = waited.iter().map(|waited| waited.each).collect();
    // A single wake-up in any round is one too many.
    let greatest = |of: fn(&Waited) -> f64| waited.iter().map(of).fold(f64::NAN, f64::max);
    let counted = |metric, of| {
        Figure::new(NAME, format!("{many} idle"), metric, Unit::Count, greatest(of)).at_most(0.0)
    };
    vec![
        counted("ticks", |waited| waited.span.ticks),
        counted("context switches", |waited| waited.span.switches),
        Figure::of_rounds(
            NAME,
            format!("from {few} to {many} idle"),
            "private, each",
            Unit::Kibibytes,
            &each,
        ),
    ]
}

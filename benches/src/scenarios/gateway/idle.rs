//! WebSockets that wait: what they take of Main, beside a native server.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{MANY, NAME, server::Server};
use crate::{
    figure::{Figure, Unit},
    scenarios::{Bench, client::wait_until, device::SETTLING, idle::Span, progress},
};

/// Time for what new WebSockets leave behind.
const SHORT: Duration = Duration::from_millis(500);

/// WebSockets in the first look, and in the second.
#[derive(Clone, Copy, Debug)]
struct Counts {
    few: u32,
    many: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waited {
    /// Private memory of one more WebSocket, in KiB.
    each: f64,
    span: Span,
}

pub(super) fn figures(bench: &Bench) -> Result<Vec<Figure>> {
    let many = bench.scale.pick(MANY, MANY, 10);
    let counts = Counts { few: bench.scale.pick(64, 64, 2), many };
    let rounds = bench.scale.pick(3, 1, 1);
    let (mut weir, mut native) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        progress("connecting and waiting", round, rounds);
        weir.push(wait(bench, &Server::weir_alone(bench)?, counts)?);
        native.push(wait(bench, &Server::native(bench)?, counts)?);
    }
    Ok(compared(&weir, &native, counts))
}

fn wait(bench: &Bench, server: &Server, Counts { few, many }: Counts) -> Result<Waited> {
    let connect = |count: u32| server.client(bench, "idle", &[count.to_string()]);
    let mut first = connect(few)?;
    wait_until(Instant::now() + bench.scale.pick(SETTLING, SETTLING, Duration::ZERO));
    let process = server.process();
    let before = process.memory()?.private();
    let mut rest = connect(many - few)?;
    // Until then a connection that proved nothing would be ended.
    wait_until(Instant::now() + bench.scale.pick(SETTLING, SHORT, Duration::ZERO));
    let span = Duration::from_millis(bench.scale.pick(10_000, 1000, 200));
    let (start, threads) = (Instant::now(), process.threads()?);
    wait_until(start + span);
    let span = Span::between(&threads, &process.threads()?, start.elapsed());
    // In a short run, the server may still give back memory of its start.
    let more = (process.memory()?.private() - before).max(0.0);
    for websockets in [&mut first, &mut rest] {
        ensure!(websockets.ask("")? == "well", "a WebSocket has ended");
    }
    Ok(Waited { each: more / f64::from(many - few), span })
}

fn compared(weir: &[Waited], native: &[Waited], Counts { few, many }: Counts) -> Vec<Figure> {
    // A single wake-up in any round is one too many.
    let counted = |metric, of: fn(&Waited) -> f64| {
        let [weir, native] = [weir, native].map(|waited| waited.iter().map(of).fold(f64::NAN, f64::max));
        Figure::new(NAME, format!("{many} idle"), metric, Unit::Count, weir).beside(native).at_most(0.0)
    };
    let [weir_each, native_each] =
        [weir, native].map(|waited| waited.iter().map(|waited| waited.each).collect::<Vec<_>>());
    vec![
        counted("ticks", |waited| waited.span.ticks),
        counted("context switches", |waited| waited.span.switches),
        Figure::of_rounds(
            NAME,
            format!("from {few} to {many} idle"),
            "private, each",
            Unit::Kibibytes,
            &weir_each,
        )
        .beside_rounds(&weir_each, &native_each),
    ]
}

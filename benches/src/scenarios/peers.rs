//! From a program outside Main to an extension and back over the peer socket, from an extension to such a program, and
//! programs that wait. `docs/benchmarks.md` explains the figures.

mod native;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::getuid;
use weir_host::{Config, Main, MainConfig, config::CpuShare, peers::PeerConfig};
use weir_peer_socket::PeerSocket;

use self::native::Native;
use super::{
    Bench, Scenario,
    calls::{Calls, Round, SIZES},
    device::{Device, Site, allow_connections},
    embedder::Embedder,
    idle::{Counts, MANY, Waited},
    progress,
};
use crate::{
    figure::{Figure, Unit, microseconds},
    process,
};

const NAME: &str = "peers";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "programs outside Main call an extension, serve it, and wait", run };

/// The target for a request that is under way alone, over the baseline: processor time and median.
const TARGET: f64 = 1.5;

/// Concurrent requests in the pipelined case.
const PIPELINED: u32 = 64;

/// The calling program.
const APP: &str = "app:bench";

/// The serving program, and its contract.
const SIDECAR: (&str, &str) = ("sidecar:bench", "sidecar@1");

/// The requests of a case, and rounds of both sides.
#[derive(Debug)]
struct Case {
    name: String,
    way: Way,
    calls: Calls,
    weir: Vec<Round>,
    native: Vec<Round>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A program calls, one request after the other.
    One,
    /// A program calls, with many requests under way.
    Pipelined,
    /// A program is called.
    ToSidecar,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let [main, native_server, calling] =
        ["main.sock", "native.sock", "sidecar.sock"].map(|name| dir.path().join(name));
    let weir = weir(bench, &main)?;
    let native = Native::start(&native_server)?;
    let program =
        |what: &str, socket: &Path, rest: &[&str]| Device::start(bench.program(what)?.arg(socket).args(rest));
    let mut callers = [program("call", &main, &[APP])?, program("call", &native_server, &[APP])?];
    let serve = [SIDECAR.0, SIDECAR.1];
    let weir_sidecar = program("serve", &main, &serve)?;
    let accepting = native.accept(&calling)?;
    let mut sidecars = [weir_sidecar, program("serve", &calling, &serve)?];
    let mut served =
        accepting.recv_timeout(super::device::PATIENCE).context("no program serves")?.map(Some)?;
    let mut cases = cases(bench.scale.pick(30_000, 10_000, 200));
    let rounds = bench.scale.pick(7, 3, 1);
    for round in 0..rounds {
        progress("requests", round, rounds);
        for case in &mut cases {
            let calls = case.calls;
            let ([weir_caller, native_caller], [weir_sidecar, native_sidecar]) =
                (&mut callers, &mut sidecars);
            let (beside, baseline) = match case.way {
                Way::One | Way::Pipelined => (called_by(weir_caller, calls), called_by(native_caller, calls)),
                Way::ToSidecar => (
                    calling_to(weir_sidecar, calls, || {
                        weir.ask("relay@1", "go", &[calls.number, calls.size]).map(drop)
                    }),
                    calling_to(native_sidecar, calls, || native.call_sidecar(&mut served, calls)),
                ),
            };
            case.weir.push(beside.with_context(|| case.name.clone())?);
            case.native.push(baseline.with_context(|| format!("{}, native", case.name))?);
        }
    }
    let mut figures: Vec<_> = cases.iter().flat_map(Case::figures).collect();
    figures.extend(idle(bench)?);
    Ok(figures)
}

/// A round in which a program calls. The server's processor time is that of this process, which has both servers and
/// does nothing else.
fn called_by(caller: &mut Device, Calls { number, size, at_once }: Calls) -> Result<Round> {
    let used = || Ok(process::of_all_threads());
    Round::of(caller, format_args!("{number} {size} {at_once}"), number, used)
}

/// A round in which a program is called: `call` makes the requests from this process.
fn calling_to(sidecar: &mut Device, calls: Calls, call: impl FnOnce() -> Result<()>) -> Result<Round> {
    let mut used = || {
        let of_sidecar = *sidecar.numbers("used")?.first().context("no processor time")?;
        anyhow::Ok(Duration::from_nanos(of_sidecar) + process::of_all_threads())
    };
    let (before, start) = (used()?, Instant::now());
    call()?;
    let (time, number) = (start.elapsed(), f64::from(calls.number));
    let processor = microseconds(used()? - before) / number;
    Ok(Round { processor, time: microseconds(time) / number, ..Round::default() })
}

fn cases(number: u32) -> Vec<Case> {
    let case = |name: String, way, size, at_once| Case {
        name,
        way,
        // Each of the concurrent callers makes as many calls.
        calls: Calls { number: number / at_once * at_once, size, at_once },
        weir: Vec::new(),
        native: Vec::new(),
    };
    let alone = SIZES.map(|(name, size)| case(name.to_owned(), Way::One, size, 1));
    let pipelined = case(format!("1 KiB, {PIPELINED} under way"), Way::Pipelined, 1024, PIPELINED);
    let to_sidecar = SIZES.map(|(name, size)| case(format!("{name}, to a sidecar"), Way::ToSidecar, size, 1));
    alone.into_iter().chain([pipelined]).chain(to_sidecar).collect()
}

impl Case {
    fn figures(&self) -> Vec<Figure> {
        let figure = |metric, of: fn(&Round) -> f64| {
            let rounds = (&*self.weir, &*self.native);
            Figure::compared((NAME, &self.name), metric, Unit::Microseconds, rounds, of)
        };
        let processor = figure("cpu per request", |round| round.processor);
        if self.way == Way::One {
            let median = figure("p50", |round| round.p50).at_most(TARGET);
            return vec![processor.at_most(TARGET), median, figure("p99", |round| round.p99)];
        }
        vec![processor, figure("time per request", |round| round.time)]
    }
}

/// Main with a peer socket, an echo, and an extension that calls a program outside.
fn weir(bench: &Bench, socket: &Path) -> Result<Embedder> {
    let (sidecar, contract) = SIDECAR;
    let mut echo = bench.guests.echo()?;
    echo.limits.cpu_share = CpuShare::WHOLE;
    let caller = bench.guests.caller("caller", "relay@1", contract)?;
    let mut config = Config::new(MainConfig::default(), vec![echo, caller]);
    let mut app = peer(APP)?;
    app.wants = vec!["echo@1".parse()?];
    let mut sidecar = peer(sidecar)?;
    sidecar.fulfills = vec![contract.parse()?];
    config.peers = vec![app, sidecar];
    let peers = PeerSocket::bind(socket)?;
    Embedder::start(Main::builder(config).attach(|attached| peers.serve(attached)))
}

/// A peer whose name this user proves, and which no rate of messages holds up.
fn peer(name: &str) -> Result<PeerConfig> {
    let mut peer = PeerConfig::new(name.parse()?);
    peer.uid = Some(getuid().as_raw());
    peer.limits.message_rate = 1_000_000;
    Ok(peer)
}

/// Programs that are connected and wait: what they take of Main.
fn idle(bench: &Bench) -> Result<Vec<Figure>> {
    allow_connections(MANY.into())?;
    let counts = Counts::new(bench);
    let rounds = bench.scale.pick(3, 1, 1);
    let mut waited = Vec::new();
    for round in 0..rounds {
        progress("connecting and waiting", round, rounds);
        waited.push(wait(bench, counts)?);
    }
    Ok(counts.figures(NAME, &waited, &[]))
}

fn wait(bench: &Bench, counts: Counts) -> Result<Waited> {
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let socket = dir.path().join("peers.sock");
    let config = format!(
        "peer-socket = \"{}\"\n\n[peer.\"{APP}\"]\nuid = {}\nlimits.sessions = {MANY}\n",
        socket.display(),
        getuid().as_raw()
    );
    let site = Site::new(bench, false)?;
    let main = site.weir(&[], &config, &[])?;
    counts.wait(bench, &main.process(), Duration::from_millis(500), |count| {
        Device::start(bench.program("idle")?.arg(&socket).args([APP, &count.to_string()]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Met;

    #[test]
    fn a_request_alone_has_targets_for_its_processor_time_and_its_median() {
        let [mut alone, .., mut pipelined, _, _, mut to_sidecar] = <[Case; 7]>::try_from(cases(64)).unwrap();
        let round = |factor: f64| Round {
            processor: 10.0 * factor,
            time: 30.0 * factor,
            p50: 20.0 * factor,
            p99: 40.0,
            ..Round::default()
        };
        for case in [&mut alone, &mut pipelined, &mut to_sidecar] {
            case.weir = vec![round(2.0); 3];
            case.native = vec![round(1.0); 3];
        }
        let of = |case: &Case| {
            let figures = case.figures();
            figures
                .iter()
                .map(|figure| (figure.metric.clone(), figure.ratio, figure.met()))
                .collect::<Vec<_>>()
        };
        let figure = |metric: &str, ratio, met| (metric.to_owned(), Some(ratio), met);
        assert_eq!(
            of(&alone),
            [
                figure("cpu per request", 2.0, Some(Met::No)),
                figure("p50", 2.0, Some(Met::No)),
                figure("p99", 1.0, None)
            ]
        );
        for case in [&pipelined, &to_sidecar] {
            assert_eq!(
                of(case),
                [figure("cpu per request", 2.0, None), figure("time per request", 2.0, None)],
                "{}",
                case.name
            );
        }
    }
}

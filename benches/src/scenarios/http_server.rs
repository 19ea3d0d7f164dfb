//! A component that serves HTTP, behind the gateway and under `wasmtime serve`. `docs/benchmarks.md` explains the figures.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{
    Bench, Scenario,
    device::{Device, PATIENCE, allow_connections, wait_until},
    progress,
};
use crate::{
    figure::{Figure, Unit, median},
    process::Process,
};

pub(crate) const NAME: &str = "http-server";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "a component that serves HTTP, beside `wasmtime serve`", run };

/// The component (`benches/guests`).
const COMPONENT: &str = "serving.wasm";

/// The pause before another look at whether a server listens.
const PACE: Duration = Duration::from_millis(10);

/// Requests at once.
const AT_ONCE: usize = 64;

/// Connections in the second case.
const MANY: usize = 1000;

/// The targets for the processor time of a request over the baseline: a new instance for each, or one for many.
const FRESH: f64 = 1.2;
const WARM: f64 = 0.5;

/// What the hostile server is asked for, each by clients that leave after a while, and so many of each.
const HOSTILE: [&str; 4] = ["spin", "memory", "endless", "panic"];
const CLIENTS: usize = 4;

/// How long such a client stays if it gets nothing.
const STAY: Duration = Duration::from_millis(50);

/// A server, and what its rounds took.
struct Side {
    server: Server,
    rounds: [Vec<Round>; 2],
}

enum Server {
    /// Main, and its addresses: at the gateway, and the server's own socket, where any number of clients may stay.
    Weir {
        device: Device,
        gateway: SocketAddr,
        dir: TempDir,
    },
    Wasmtime {
        child: Child,
        address: SocketAddr,
    },
}

/// What a request took, in microseconds, and the memory that the server had after the round, in KiB.
#[derive(Clone, Copy)]
struct Round {
    processor: f64,
    p50: f64,
    p99: f64,
    memory: f64,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let wasmtime = bench.wasmtime.as_deref().context("`--wasmtime` says where `wasmtime` is")?;
    allow_connections(MANY.try_into()?)?;
    let side = |server| Side { server, rounds: [Vec::new(), Vec::new()] };
    let mut sides = [
        side(Server::weir(bench, 1, "")?),
        side(Server::weir(bench, 1_000_000, "")?),
        side(Server::wasmtime(bench, wasmtime)?),
    ];
    let number = bench.scale.pick(320, 80, 10) * AT_ONCE;
    let rounds = bench.scale.pick(7, 3, 1);
    for round in 0..rounds {
        progress("requests", round, rounds);
        for side in &mut sides {
            for (connections, measured) in [AT_ONCE, MANY].into_iter().zip(&mut side.rounds) {
                measured.push(side.server.round(bench, (connections, AT_ONCE), number)?);
            }
        }
    }
    let [fresh, warm, baseline] = sides.map(|side| side.rounds);
    let mut figures = Vec::new();
    for (what, rounds, target) in
        [("a new instance for each", fresh, FRESH), ("one instance for many", warm, WARM)]
    {
        for ((connections, rounds), baseline) in [AT_ONCE, MANY].iter().zip(rounds).zip(&baseline) {
            let case = format!("{what}, {connections} connections");
            let figure = |metric, unit, of: fn(&Round) -> f64| {
                Figure::compared((NAME, &case), metric, unit, (&rounds, baseline), of)
            };
            let memory = |rounds: &[Round]| median(rounds.iter().map(|round| round.memory).collect());
            figures.extend([
                figure("cpu per request", Unit::Microseconds, |round| round.processor).at_most(target),
                figure("p50", Unit::Microseconds, |round| round.p50),
                figure("p99", Unit::Microseconds, |round| round.p99),
                Figure::new(NAME, &*case, "private memory", Unit::Kibibytes, memory(&rounds))
                    .beside(memory(baseline)),
            ]);
        }
    }
    figures.extend(beside(bench)?);
    Ok(figures)
}

/// One client after the other asks a server, alone and beside a hostile one in the same Main.
fn beside(bench: &Bench) -> Result<Vec<Figure>> {
    let second = format!(
        "[[extension]]\nid = \"hostile\"\npath = \"{COMPONENT}\"\nserves-http = {{ path = \"/hostile\", open = true }}\n"
    );
    let server = Server::weir(bench, 1, &second)?;
    let Server::Weir { gateway, .. } = &server else { return Ok(Vec::new()) };
    let number = bench.scale.pick(4000, 1000, 20);
    let (mut alone, mut hostile) = (Vec::new(), Vec::new());
    for round in 0..bench.scale.pick(7, 3, 1) {
        progress("beside a hostile server", round, bench.scale.pick(7, 3, 1));
        alone.push(server.round(bench, (1, 1), number)?);
        let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
        let measured = thread::scope(|scope| {
            for what in HOSTILE.repeat(CLIENTS) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        served.fetch_add(u64::from(annoy(gateway, what).is_ok()), Ordering::Relaxed);
                    }
                });
            }
            let measured = server.round(bench, (1, 1), number);
            stop.store(true, Ordering::Relaxed);
            measured
        })?;
        ensure!(served.into_inner() > 0, "no hostile request was made");
        hostile.push(measured);
    }
    let case = "one client beside hostile handlers and clients";
    let figure = |metric, of: fn(&Round) -> f64| {
        Figure::compared((NAME, case), metric, Unit::Microseconds, (&hostile, &alone), of)
    };
    Ok(vec![figure("p50", |round| round.p50), figure("p99", |round| round.p99)])
}

/// Makes a request to the hostile server, reads for a while, and leaves.
fn annoy(gateway: &SocketAddr, what: &str) -> Result<()> {
    let mut stream = TcpStream::connect(gateway)?;
    stream.set_read_timeout(Some(STAY))?;
    stream.write_all(format!("GET /hostile/{what} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())?;
    let mut bytes = [0; 1 << 16];
    for _ in 0..64 {
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Server {
    /// Main with the server, and with `more` at the end of its configuration.
    fn weir(bench: &Bench, requests_per_instance: u32, more: &str) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let (gateway, file) = (free()?, dir.path().join("weir.toml"));
        let config = format!(
            "[main]\nplugin-dir = \"{}\"\n[gateway]\nlisten = [\"{gateway}\"]\nconnections = 4096\n\
             [[extension]]\nid = \"server\"\npath = \"{COMPONENT}\"\nclass = \"max\"\nlimits.cpu-share = \"100%\"\n\
             serves-http = {{ path = \"/\", open = true, socket = \"{}\", at-once = {AT_ONCE}, \
             requests-per-instance = {requests_per_instance} }}\n{more}",
            bench.guests.dir().display(),
            own_socket(&dir).display(),
        );
        fs::write(&file, config).with_context(|| format!("cannot write `{}`", file.display()))?;
        let device = Device::start(bench.program("weir")?.env("MALLOC_ARENA_MAX", "1").arg(file))?;
        let began = Instant::now();
        while !own_socket(&dir).exists() {
            ensure!(began.elapsed() < PATIENCE, "the server has no socket");
            wait_until(Instant::now() + PACE);
        }
        Ok(Self::Weir { device, gateway, dir })
    }

    fn wasmtime(bench: &Bench, program: &Path) -> Result<Self> {
        let address = free()?;
        let mut command = Command::new(program);
        command
            .args(["serve", "-Scli", "--addr", &address.to_string()])
            .arg(bench.guests.dir().join(COMPONENT));
        command.env("MALLOC_ARENA_MAX", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot run `{}`", program.display()))?;
        let server = Self::Wasmtime { child, address };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(began.elapsed() < PATIENCE, "`wasmtime serve` does not listen");
            wait_until(Instant::now() + PACE);
        }
        Ok(server)
    }

    fn process(&self) -> Process {
        match self {
            Self::Weir { device, .. } => device.process(),
            Self::Wasmtime { child, .. } => Process::new(child.id(), None),
        }
    }

    /// Makes so many requests on so many new connections, and so many at once.
    fn round(&self, bench: &Bench, (connections, at_once): (usize, usize), number: usize) -> Result<Round> {
        let address = match self {
            // The gateway bears 256 clients without a name.
            Self::Weir { dir, .. } if connections > AT_ONCE => format!("unix:{}", own_socket(dir).display()),
            Self::Weir { gateway: address, .. } | Self::Wasmtime { address, .. } => address.to_string(),
        };
        let mut client = Device::start(bench.program("ask")?.arg(address).arg(connections.to_string()))?;
        let process = self.process();
        let before = process.used()?;
        let parts = client.numbers(format_args!("{number} {at_once}"))?;
        let used = process.used()? - before;
        let [_, _, p50, p99] = <[u64; 4]>::try_from(parts).ok().context("a round has four parts")?;
        let microseconds = |nanoseconds: u64| Duration::from_nanos(nanoseconds).as_secs_f64() * 1e6;
        Ok(Round {
            processor: used.as_secs_f64() * 1e6 / f64::from(u32::try_from(number)?),
            p50: microseconds(p50),
            p99: microseconds(p99),
            memory: process.memory()?.private_dirty,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Wasmtime { child, .. } = self {
            // It may have ended.
            let _ended = child.kill();
            let _status = child.wait();
        }
    }
}

fn own_socket(dir: &TempDir) -> PathBuf {
    dir.path().join("server.sock")
}

/// An address that nothing listens on, and that nothing else on this machine is likely to take.
fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

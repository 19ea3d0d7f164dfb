//! One call after the other, and many at once: from this program through two Mains to an extension, beside a plain request
//! over the same server.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::{StreamExt, future::try_join_all};
use rustix::time::{ClockId, clock_gettime};
use weir_peer::Peer;

use crate::{
    Measure, Measured,
    site::{Node, Plan, Process, Site, wait},
};

/// Of the baseline: a request and its reply by async-nats alone.
const SUBJECT: &str = "plain.echo";

const SIZE: usize = 1024;

/// What is aimed at with many under way, over a plain request.
const TARGET: f64 = 2.0;

/// Calls under way, and the name of the case.
const CASES: [(u32, &str); 2] = [(1, "1 KiB"), (64, "1 KiB, 64 under way")];

const NEAR: Plan = Plan {
    name: String::new(),
    main: "",
    app: "wants = [\"echo@1\"]",
    peer: "fulfills = [\"echo@1\"]",
    bridge: "[import.contracts.\"echo@1\"]\nfrom = [\"far\"]\noperations = [\"echo\"]\n",
};

const FAR: Plan = Plan {
    name: String::new(),
    main: "[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nfulfills = [\"echo@1\"]\n",
    app: "wants = [\"echo@1\"]",
    peer: "wants = [\"echo@1\"]",
    bridge: "[export.contracts.\"echo@1\"]\nto = [\"near\"]\n",
};

/// All that has a part in a call, in the order of the way there.
const HOPS: [&str; 7] = ["caller", "near Main", "near bridge", "server", "far bridge", "far Main", "guest"];

struct Fleet<'m> {
    site: Site<'m>,
    near: Node,
    far: Node,
    echo: Process,
    client: Client,
    /// At the near Main, and at the far one.
    peers: [Peer; 2],
}

#[derive(Clone, Copy)]
enum Way {
    /// Over the fleet.
    Remote,
    /// At the far Main, without a bridge.
    Local,
    /// Without Weir.
    Plain,
}

/// What one call took in a round, in microseconds.
struct Round {
    time: f64,
    p50: f64,
    p99: f64,
    /// Processor time by [`HOPS`], and of the plain echo.
    hops: [f64; HOPS.len()],
    echo: f64,
}

pub(crate) async fn measure(measure: &Measure) -> Result<Vec<Measured>> {
    let fleet = Fleet::start(measure).await?;
    let mut measured = Vec::new();
    for (at_once, name) in CASES {
        let (mut remote, mut local, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..measure.rounds {
            eprintln!("  {name} ({}/{})", round + 1, measure.rounds);
            remote.push(fleet.round(Way::Remote, measure.calls, at_once).await?);
            local.push(fleet.round(Way::Local, measure.calls, at_once).await?);
            plain.push(fleet.round(Way::Plain, measure.calls, at_once).await?);
        }
        measured.extend(figures(name, at_once, &remote, &local, &plain));
    }
    Ok(measured)
}

fn figures(name: &str, at_once: u32, remote: &[Round], local: &[Round], plain: &[Round]) -> Vec<Measured> {
    let all = |rounds: &[Round], of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<_>>();
    let beside = |metric: &str, of: &dyn Fn(&Round) -> f64| {
        Measured::new(name, metric, "us", all(remote, of)).beside(all(plain, of))
    };
    let aimed = |measured: Measured| if at_once > 1 { measured.at_most(TARGET) } else { measured };
    let mut figures = vec![
        beside("p50", &|round| round.p50),
        beside("p99", &|round| round.p99),
        aimed(beside("time per call", &|round| round.time)),
        aimed(beside("cpu per call", &|round| round.hops.iter().sum::<f64>() + round.echo)),
        Measured::new(name, "p50 at the far Main alone", "us", all(local, &|round| round.p50)),
        Measured::new(name, "time per call at the far Main alone", "us", all(local, &|round| round.time)),
    ];
    for (hop, hop_name) in HOPS.iter().enumerate() {
        let of = |round: &Round| round.hops.get(hop).copied().unwrap_or_default();
        let figure = Measured::new(name, format!("cpu of {hop_name}"), "us", all(remote, &of));
        let is_plain = matches!(*hop_name, "caller" | "server");
        figures.push(if is_plain { figure.beside(all(plain, &of)) } else { figure });
    }
    figures
}

impl<'m> Fleet<'m> {
    async fn start(measure: &'m Measure) -> Result<Self> {
        let site = Site::new(measure).await?;
        let far = site.node(&Plan { name: "far".to_owned(), ..FAR }).await?;
        let near = site.node(&Plan { name: "near".to_owned(), ..NEAR }).await?;
        let echo = site.echo()?;
        let client = connect(site.address).await?;
        let peers = [near.peer().await?, far.peer().await?];
        let fleet = Self { site, near, far, echo, client, peers };
        let begun = Instant::now();
        for way in [Way::Remote, Way::Local, Way::Plain] {
            while fleet.call(way, "are you there?".into()).await.is_err() {
                wait(begun, "the fleet").await?;
            }
        }
        Ok(fleet)
    }

    async fn call(&self, way: Way, payload: Bytes) -> Result<Bytes> {
        let [near, far] = &self.peers;
        match way {
            Way::Remote => Ok(near.call("echo@1", "echo", payload).await?),
            Way::Local => Ok(far.call("echo@1", "echo", payload).await?),
            Way::Plain => Ok(self.client.request(SUBJECT, payload).await?.payload),
        }
    }

    async fn round(&self, way: Way, calls: u32, at_once: u32) -> Result<Round> {
        let before = self.used()?;
        let start = Instant::now();
        let rows = (0..at_once).map(|_| self.row(way, calls / at_once));
        let mut times = try_join_all(rows).await?.concat();
        let time = start.elapsed();
        let after = self.used()?;
        times.sort_unstable();
        let number = f64::from(calls / at_once * at_once);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / number;
        let used = before.iter().zip(after).map(|(before, after)| each(after.saturating_sub(*before)));
        let used: Vec<_> = used.collect();
        let (echo, hops) = used.split_last().context("nothing has used anything")?;
        Ok(Round {
            time: each(time),
            p50: percentile(&times, 50),
            p99: percentile(&times, 99),
            hops: hops.try_into()?,
            echo: *echo,
        })
    }

    /// Each call after the answer to the one before.
    async fn row(&self, way: Way, calls: u32) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for number in 0..calls {
            let mut payload = vec![0x5a; SIZE];
            *payload.first_chunk_mut().context("no room")? = number.to_le_bytes();
            let payload = Bytes::from(payload);
            let start = Instant::now();
            let answer = self.call(way, payload.clone()).await?;
            times.push(start.elapsed());
            ensure!(answer == payload, "the echo answers otherwise");
        }
        Ok(times)
    }

    /// Processor time by [`HOPS`], and of the plain echo.
    fn used(&self) -> Result<[Duration; HOPS.len() + 1]> {
        let [near, far] = [&self.near, &self.far];
        let guest = far.guest("echo")?;
        Ok([
            // This clock does not fail and is never negative.
            clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default(),
            near.main.processor()?,
            near.bridge.processor()?,
            self.site.server.processor()?,
            far.bridge.processor()?,
            far.main.processor()?.saturating_sub(guest),
            guest,
            self.echo.processor()?,
        ])
    }
}

/// The least time that this percentage of all does not exceed, in microseconds.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

async fn connect(server: SocketAddr) -> Result<Client> {
    let options = ConnectOptions::new().retry_on_initial_connect();
    options.connect(format!("nats://{server}")).await.context("cannot connect to the server")
}

/// Answers until the process is killed.
pub(crate) async fn echo(server: SocketAddr) -> Result<()> {
    let client = connect(server).await?;
    let mut requests = client.queue_subscribe(SUBJECT, "echo".to_owned()).await?;
    while let Some(request) = requests.next().await {
        if let Some(reply) = request.reply {
            client.publish(reply, request.payload).await?;
        }
    }
    Ok(())
}

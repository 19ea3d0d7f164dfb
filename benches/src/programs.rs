//! Other processes of scenarios: this program again, with arguments that say what it is. A client does not know what
//! answers it: Main, or a native server beside it.
//!
//! Each prints `ready` once it is ready, answers each line with a line, and ends with its input. WAY is `websocket` or
//! `stream`. Processor time is of the process so far, and points in time are of the wall clock, both in nanoseconds. So
//! are the four parts of a round: its time, its processor time, the median call and the 99th percentile.
//!
//! | arguments | what it does | a line | the answer |
//! | --- | --- | --- | --- |
//! | `call SOCKET NAME` | a peer of Main that calls `echo@1` | `NUMBER SIZE AT-ONCE` | the parts of the round |
//! | `serve SOCKET NAME CONTRACT` | a peer that serves an echo | any | processor time |
//! | `idle SOCKET NAME COUNT` | holds so many sessions | any | `well`, if all go on |
//! | `weir FILE` | Main with a gateway, with the configuration of the file | `used` | processor time |
//! | | | `publish COUNT BYTES INTERVAL-US` | when each packet was published |
//! | `native HTTP STREAMS` | the same with axum and tokio, at these addresses | as above | as above |
//! | `request ADDRESS` | makes requests by WebSocket, one after the other | `NUMBER SIZE` | the parts of the round |
//! | `read WAY ADDRESS SUBSCRIBERS` | subscribers that count what they read | `COUNT BYTES` | when each packet had come to all |
//! | `stall WAY ADDRESS` | a subscriber that does not read | any | the bytes that it can read then |
//! | `ask ADDRESS CONNECTIONS` | makes requests by HTTP on connections that stay open | `NUMBER AT-ONCE` | the parts of the round |
//! | `websockets ADDRESS COUNT` | holds so many WebSockets | any | `well`, if all go on |

mod apps;
mod native;
mod subscribers;
mod web;

use std::{
    fmt::Display,
    io,
    path::Path,
    str::FromStr,
    sync::mpsc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use weir_gateway::{Gateway, GatewayConfig};
use weir_host::{CallOptions, Main, blocking::wait, control::ExtensionState};
use weir_peer::{Error, Options, Peer, Requests};

use crate::{
    figure::Sorted,
    process,
    scenarios::calls::{Calls, Echo},
};

/// The first argument of such a process.
pub(crate) const BESIDE: &str = "beside";

/// Time for an extension to publish all packets of a round.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives the answer to a line.
type Answering = Box<dyn FnMut(&str) -> Result<String>>;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut answering = match *arguments {
        ["call", socket, name] => call(socket, name)?,
        ["serve", socket, name, contract] => serve(socket, name, contract)?,
        ["idle", socket, name, count] => idle(socket, name, count.parse()?)?,
        ["weir", file] => weir(file.as_ref())?,
        ["native", http, streams] => native::start(http.parse()?, streams.parse()?)?,
        ["request", address] => apps::request(address)?,
        ["ask", address, connections] => web::ask(address, connections.parse()?)?,
        ["websockets", address, count] => apps::idle(address, count.parse()?)?,
        ["read", way, address, subscribers] => {
            subscribers::read(way.parse()?, address, subscribers.parse()?)?
        }
        ["stall", way, address] => subscribers::stall(way.parse()?, address)?,
        _ => bail!("there is no such process: {arguments:?}"),
    };
    println!("ready");
    for line in io::stdin().lines() {
        println!("{}", answering(&line?)?);
    }
    Ok(())
}

/// A line to a server.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Used,
    Publish(Packets),
}

#[derive(Clone, Copy, Debug)]
struct Packets {
    count: u32,
    bytes: u32,
    interval_us: u32,
}

impl FromStr for Asked {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        if line == "used" {
            return Ok(Self::Used);
        }
        let packets = line.strip_prefix("publish ").context("a server is asked `used` or `publish`")?;
        let [count, bytes, interval_us] = three(packets)?;
        Ok(Self::Publish(Packets { count, bytes, interval_us }))
    }
}

fn three(line: &str) -> Result<[u32; 3]> {
    let numbers = line.split(' ').map(|number| Ok(number.parse()?)).collect::<Result<Vec<_>>>()?;
    numbers.try_into().ok().context("three numbers are needed")
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Does the work of a round, which gives the time of each call. Returns the four parts of the round as a line.
fn round(work: impl FnOnce() -> Result<Vec<Duration>>) -> Result<String> {
    let (used, start) = (process::of_all_threads(), Instant::now());
    let times = work()?;
    let (time, used) = (start.elapsed(), process::of_all_threads() - used);
    let times = Sorted::new(times);
    let [p50, p99] = [50, 99].map(|percent| nanoseconds(times.least(percent).unwrap_or_default()));
    Ok(line([nanoseconds(time), nanoseconds(used), p50, p99]))
}

/// Processor time of this process, in nanoseconds.
fn used() -> String {
    nanoseconds(process::of_all_threads()).to_string()
}

/// The present point in time, which is the same in all processes: nanoseconds of the wall clock.
fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, nanoseconds)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn line(numbers: impl IntoIterator<Item = impl Display>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

async fn connect(socket: &str, name: &str) -> Result<Peer> {
    Ok(Peer::connect(socket, Options::new(name.parse()?)).await?)
}

/// A program that calls, with the time of each call.
#[derive(Clone)]
struct Caller {
    peer: Peer,
    times: Vec<Duration>,
}

impl Echo for Caller {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        let start = Instant::now();
        let answer = self.peer.call("echo@1", "echo", payload).await?;
        self.times.push(start.elapsed());
        Ok(answer)
    }
}

fn call(socket: &str, name: &str) -> Result<Answering> {
    let runtime = runtime()?;
    let peer = runtime.block_on(connect(socket, name))?;
    Ok(Box::new(move |line| {
        let [number, size, at_once] = three(line)?;
        let caller = Caller { peer: peer.clone(), times: Vec::with_capacity(usize::try_from(number)?) };
        round(|| {
            let (_, callers) = runtime.block_on(Calls { number, size, at_once }.make(caller))?;
            Ok(callers.into_iter().flat_map(|caller| caller.times).collect())
        })
    }))
}

/// Serves an echo from a thread of its own.
fn serve(socket: &str, name: &str, contract: &str) -> Result<Answering> {
    let (tell, told) = mpsc::sync_channel(1);
    let [socket, name, contract] = [socket, name, contract].map(str::to_owned);
    let _thread = thread::Builder::new().name("serving".to_owned()).spawn(move || {
        let served = runtime().and_then(|runtime| {
            let requests = runtime.block_on(async {
                let peer = connect(&socket, &name).await?;
                anyhow::Ok(peer.serve(&contract, &["echo"]).await?)
            })?;
            Ok((runtime, requests))
        });
        match served {
            // Telling fails if nothing waits any more.
            Err(error) => drop(tell.send(Err(error))),
            Ok((runtime, requests)) => {
                drop(tell.send(Ok(())));
                runtime.block_on(echo(requests));
            }
        }
    })?;
    told.recv().context("the server has ended")??;
    Ok(Box::new(|_| Ok(used())))
}

async fn echo(mut requests: Requests) {
    while let Some(request) = requests.next().await {
        let payload = request.payload().clone();
        request.answer(Ok(payload)).await;
    }
}

fn idle(socket: &str, name: &str, count: u32) -> Result<Answering> {
    let runtime = runtime()?;
    let peers = runtime.block_on(async {
        let mut peers = Vec::new();
        for _ in 0..count {
            peers.push(connect(socket, name).await?);
        }
        anyhow::Ok(peers)
    })?;
    Ok(Box::new(move |_| {
        runtime.block_on(async {
            for peer in &peers {
                // Nothing fulfils this contract, and only Main can say so.
                let answer = peer.call("nothing@1", "ask", "").await;
                let is_from_main =
                    matches!(answer, Err(Error::UnknownContract(_) | Error::PermissionDenied(_)));
                ensure!(is_from_main, "a session answers {answer:?}");
            }
            Ok("well".to_owned())
        })
    }))
}

/// Main with a gateway, and an extension that publishes.
fn weir(file: &Path) -> Result<Answering> {
    let config = weir_host::loader().section::<GatewayConfig>().load(file)?;
    let gateway = config.section::<GatewayConfig>().map(Gateway::bind).transpose()?.flatten();
    let mut builder = Main::builder(config);
    if let Some(gateway) = gateway {
        builder = builder.attach(|attached| gateway.serve(attached));
    }
    let main = wait(builder.start())?;
    for extension in main.control().extensions() {
        let state = extension.state;
        ensure!(state == ExtensionState::Ready, "`{}` is {state:?}: {:?}", extension.id, extension.reason);
    }
    Ok(Box::new(move |asked| match asked.parse()? {
        Asked::Used => Ok(used()),
        Asked::Publish(Packets { count, bytes, interval_us }) => {
            let arguments: Bytes =
                [count, bytes, interval_us].into_iter().flat_map(u32::to_le_bytes).collect();
            let options = CallOptions::default().timeout(PATIENCE);
            let times = wait(main.client().call_with("publisher@1", "publish", arguments, options))?;
            Ok(line(times.as_chunks().0.iter().copied().map(u64::from_le_bytes)))
        }
    }))
}

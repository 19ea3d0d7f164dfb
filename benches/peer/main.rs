//! A program outside Main, as its peer: it uses Weir's client as any program does, on a runtime of one thread.
//!
//! It prints `ready` once it is connected, and ends with its input. It does not know what answers at the socket: Main
//! or a native server of the same protocol.
//!
//! | arguments | what it does | a line | the answer |
//! | --- | --- | --- | --- |
//! | `call SOCKET NAME` | calls `echo@1` | `NUMBER SIZE AT-ONCE` | ns of the round, of the processor, of the median call and of the 99th percentile |
//! | `serve SOCKET NAME CONTRACT` | serves an echo | any | ns of the processor so far |
//! | `idle SOCKET NAME COUNT` | holds so many sessions | any | `well`, if all go on |

#![expect(clippy::print_stdout, reason = "it talks to its parent process")]

mod caller;
mod idle;
mod server;

use std::{io, time::Duration};

use anyhow::{Result, bail};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};
use weir_peer::{Options, Peer};

type Answering = Box<dyn FnMut(&str) -> Result<String>>;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut answering = match *arguments {
        ["call", socket, name] => caller::start(socket, name)?,
        ["serve", socket, name, contract] => server::start(socket, name, contract)?,
        ["idle", socket, name, count] => idle::start(socket, name, count.parse()?)?,
        _ => bail!("usage: call SOCKET NAME | serve SOCKET NAME CONTRACT | idle SOCKET NAME COUNT"),
    };
    println!("ready");
    for line in io::stdin().lines() {
        println!("{}", answering(&line?)?);
    }
    Ok(())
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

async fn connect(socket: &str, name: &str) -> Result<Peer> {
    Ok(Peer::connect(socket, Options::new(name.parse()?)).await?)
}

/// Processor time of this process, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // This clock does not fail and is never negative.
    Duration::try_from(time).map_or(0, nanoseconds)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

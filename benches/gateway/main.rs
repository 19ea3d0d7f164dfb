//! The processes of the scenario `gateway`: Main with a gateway, the native server beside it, and their clients, which
//! do not know which of the two answers.
//!
//! Each prints `ready` once it is, answers each line with a line, and ends with its input. WAY is `websocket` or
//! `stream`. Processor time is of the process so far, and points in time are of the wall clock, both in nanoseconds.
//!
//! | arguments | what it does | a line | the answer |
//! | --- | --- | --- | --- |
//! | `weir FILE` | Main, with the configuration of the file | `used` | processor time |
//! | | | `publish COUNT BYTES INTERVAL-US` | when each packet was published |
//! | `native HTTP STREAMS` | the same with axum and tokio, at these addresses | as above | as above |
//! | `call ADDRESS` | makes requests, one after the other | `NUMBER SIZE` | ns of the round, of the processor, of the median request and of the 99th percentile |
//! | `read WAY ADDRESS SUBSCRIBERS` | subscribers that count what they read | `COUNT BYTES` | when each packet had come to all |
//! | `stall WAY ADDRESS` | a subscriber that does not read | any | the bytes that it can read then |
//! | `idle ADDRESS COUNT` | holds so many WebSockets | any | `well`, if all go on |

#![expect(clippy::print_stdout, reason = "it talks to its parent process")]

mod caller;
mod idle;
mod native;
mod packets;
mod readers;
mod stalled;
mod subscriber;
mod websocket;
mod weir;

use std::{
    fmt::Display,
    io,
    time::{Duration, SystemTime},
};

use anyhow::{Result, bail};
use rustix::time::{ClockId, clock_gettime};

type Answering = Box<dyn FnMut(&str) -> Result<String>>;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut answering = match *arguments {
        ["weir", file] => weir::start(file.as_ref())?,
        ["native", http, streams] => native::start(http.parse()?, streams.parse()?)?,
        ["call", address] => caller::start(address)?,
        ["read", way, address, subscribers] => readers::start(way.parse()?, address, subscribers.parse()?)?,
        ["stall", way, address] => stalled::start(way.parse()?, address)?,
        ["idle", address, count] => idle::start(address, count.parse()?)?,
        _ => bail!(
            "usage: weir FILE | native HTTP STREAMS | call ADDRESS | read WAY ADDRESS SUBSCRIBERS | \
             stall WAY ADDRESS | idle ADDRESS COUNT"
        ),
    };
    println!("ready");
    for line in io::stdin().lines() {
        println!("{}", answering(&line?)?);
    }
    Ok(())
}

/// Processor time of this process, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // This clock does not fail and is never negative.
    Duration::try_from(time).map_or(0, nanoseconds)
}

/// The point in time, which is the same in all processes.
fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, nanoseconds)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn line(numbers: impl IntoIterator<Item = impl Display>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

//! Receives the events of a pattern, and keeps count of them. Its settings, in `wasi:config`: `contract`,
//! which it serves with the operation `run`, and `pattern`.
//!
//! A request is a word:
//!
//! | word | answer, or what it does |
//! | --- | --- |
//! | `told` | `EVENTS LAST LOST FAULTS`: how many it heard, the sequence of the last, how many it was told were lost, and how many came out of order or with another length than the first |
//! | `stall` | it never receives again |

use std::process::ExitCode;

use test_guests::words::text;
use wasip2::clocks::monotonic_clock::subscribe_duration;
use weir_sdk::raw::{
    channel::{self, Event, Message},
    config, events,
};

const DAY: u64 = 86_400_000_000_000;

#[derive(Debug, Default)]
struct Book {
    events: u64,
    last: u64,
    lost: u64,
    faults: u64,
    length: Option<usize>,
}

fn main() -> ExitCode {
    test_guests::ended(run())
}

fn run() -> Result<(), String> {
    channel::serve(&setting("contract")?, &["run".to_owned()]).map_err(text)?;
    events::subscribe(&setting("pattern")?).map_err(text)?;
    let mut book = Book::default();
    while let Some(message) = channel::receive() {
        match message {
            Message::Event(event) => book.enter(&event),
            Message::Request(request) => {
                let Book { events, last, lost, faults, .. } = book;
                let told = format!("{events} {last} {lost} {faults}");
                channel::respond(request.id, Ok(told.as_bytes())).map_err(text)?;
                if request.payload == b"stall" {
                    subscribe_duration(DAY).block();
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Book {
    /// Lost and received events together account for every number.
    fn enter(&mut self, event: &Event) {
        let in_order = self.last == 0 || event.sequence == self.last + event.lost + 1;
        let as_long = event.payload.len() == *self.length.get_or_insert(event.payload.len());
        self.faults += u64::from(!in_order || !as_long);
        self.events += 1;
        self.last = event.sequence;
        self.lost += event.lost;
    }
}

fn setting(key: &str) -> Result<String, String> {
    config::get(key).map_err(text)?.ok_or_else(|| format!("`{key}` is not set"))
}

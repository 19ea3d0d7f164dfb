//! An extension on strings. It serves one operation, `run`: the payload is a command line, the answer its
//! result. Its `config` sets how it starts, stops and receives:
//!
//! | key | meaning |
//! | --- | --- |
//! | `contract` | the contract that it serves; default: `puppet@1` |
//! | `start` | a command that runs before it is ready; an error ends it |
//! | `stop` | a command that runs at stop |
//! | `receive` | `in-order` or `any-order`: it takes batches |
//!
//! It traps if the payload of an event, a job or a response is `trap`. If that of an event or a job is
//! `hang`, it sleeps for an hour. If it is `poll`, it says whether a pollable of the inbox is ready before the next receive.

mod commands;
mod files;

use std::{
    cell::{Cell, RefCell},
    process::ExitCode,
};

use test_guests::words::setting;
use wasip2::{clocks::monotonic_clock::subscribe_duration, io::poll::poll};
use weir_sdk::raw::{
    channel::{self, BatchOrder, Message},
    types::HandlerError,
};

thread_local! {
    /// Events, jobs and responses, one line each.
    static HEARD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };

    /// The sender of the last request.
    static ASKER: Cell<u32> = const { Cell::new(0) };

    /// The sender of the last event or job.
    static SENDER: Cell<u32> = const { Cell::new(0) };
}

fn main() -> ExitCode {
    test_guests::ended(run())
}

fn run() -> Result<(), String> {
    let contract = setting("contract").unwrap_or_else(|| "puppet@1".to_owned());
    channel::serve(&contract, &["run".to_owned()]).map_err(|error| format!("{error:?}"))?;
    if let Some(command) = setting("start") {
        commands::run(&command)?;
    }
    receive_all();
    if let Some(command) = setting("stop") {
        commands::run(&command)?;
    }
    Ok(())
}

fn receive_all() {
    let order = match setting("receive").as_deref() {
        Some("in-order") => Some(BatchOrder::InOrder),
        Some("any-order") => Some(BatchOrder::AnyOrder),
        _ => None,
    };
    let next = || match order {
        None => Vec::from_iter(channel::receive()),
        Some(order) => channel::receive_batch(16, order, None).unwrap_or_default(),
    };
    loop {
        let messages = next();
        if messages.is_empty() {
            return;
        }
        messages.into_iter().for_each(handle);
    }
}

fn handle(message: Message) {
    match message {
        Message::Request(request) => {
            let command = String::from_utf8_lossy(&request.payload);
            if command == "forget" {
                return;
            }
            ASKER.set(request.sender);
            let refused = |text: &String| HandlerError { code: "refused".to_owned(), message: text.clone() };
            let outcome = commands::run(&command);
            let answer = outcome.as_ref().map(String::as_bytes).map_err(refused);
            if let Err(error) = channel::respond(request.id, answer.as_ref().map(|bytes| *bytes)) {
                // Too large, or answered by the command itself. In the first case another answer can follow.
                let text = format!("{error:?}");
                if channel::respond(request.id, Err(&refused(&text))).is_err() {
                    HEARD.with_borrow_mut(|heard| heard.push(text));
                }
            }
        }
        Message::Response(response) => {
            let outcome = response.outcome.map(|payload| String::from_utf8_lossy(&payload).into_owned());
            if outcome.as_deref().is_ok_and(|payload| payload == "trap") {
                commands::trap();
            }
            HEARD.with_borrow_mut(|heard| heard.push(format!("response: {outcome:?}")));
        }
        Message::Event(event) => {
            SENDER.set(event.sender);
            let topic = event.topic.unwrap_or_default();
            let kind = if event.retained { "retained" } else { "event" };
            hear(format!("{kind}: {topic} {} {}", event.sequence, event.lost), &event.payload);
        }
        Message::Job(job) => {
            SENDER.set(job.sender);
            hear(format!("job: {} {}", job.id, job.deliveries), &job.payload);
        }
    }
}

fn hear(what: String, payload: &[u8]) {
    let payload = String::from_utf8_lossy(payload);
    if payload == "trap" {
        commands::trap();
    }
    if payload == "hang" {
        #[expect(clippy::disallowed_methods, reason = "it hangs, as told")]
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
    let is_ready = payload == "poll" && is_inbox_ready();
    let ready = if is_ready { ", and there is more" } else { "" };
    HEARD.with_borrow_mut(|heard| heard.push(format!("{what} {payload}{ready}")));
}

/// Whether a pollable is ready within a second.
fn is_inbox_ready() -> bool {
    let (inbox, timer) = (channel::subscribe_inbox(), subscribe_duration(1_000_000_000));
    poll(&[&inbox, &timer]).contains(&0)
}

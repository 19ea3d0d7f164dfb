//! Misbehaves on command: `run` of its contract takes a command line.
//!
//! Its settings, in `wasi:config`:
//!
//! | key | meaning |
//! | --- | --- |
//! | `contract` | the contract that it serves |
//! | `start` | a command that runs before it is ready |
//! | `echoes` | a topic: it publishes each event that it receives again under this topic |

#![expect(clippy::print_stdout, reason = "what guests print is what the tests look at")]

mod files;
mod messages;
mod output;
mod paying;
mod pollables;
mod sockets;
mod storms;
mod work;

use std::process::ExitCode;

use test_guests::{
    PATIENT,
    words::{setting, text, word},
};
use weir_sdk::raw::{
    channel::{self, Message, Request},
    events,
    types::HandlerError,
};

/// The result of a command. None if there is no such command.
type Outcome = Option<Result<String, String>>;

fn main() -> ExitCode {
    test_guests::ended(run())
}

fn run() -> Result<(), String> {
    channel::serve(&setting("contract").ok_or("no `contract`")?, &["run".to_owned()]).map_err(text)?;
    if let Some(command) = setting("start") {
        obey(&command, 0)?;
    }
    let echoes = setting("echoes");
    while let Some(message) = channel::receive() {
        match (message, &echoes) {
            (Message::Request(request), _) => answer(&request),
            (Message::Event(event), Some(topic)) => drop(events::publish(topic, &event.payload, PATIENT)),
            _ => {}
        }
    }
    Ok(())
}

fn answer(request: &Request) {
    let outcome = obey(&String::from_utf8_lossy(&request.payload), request.id);
    let refused = |message: String| HandlerError { code: "refused".to_owned(), message };
    let answer = outcome.map_err(refused);
    // Fails if the command has answered, or will answer later.
    let _answered = channel::respond(request.id, answer.as_ref().map(String::as_bytes));
}

fn obey(line: &str, request: u64) -> Result<String, String> {
    let (command, rest) = word(line);
    work::run(command, rest)
        .or_else(|| messages::run(command, rest, request))
        .or_else(|| output::run(command, rest))
        .or_else(|| paying::run(command, rest, request))
        .or_else(|| pollables::run(command, rest))
        .or_else(|| files::run(command, rest))
        .or_else(|| sockets::run(command, rest))
        .or_else(|| storms::run(command, rest))
        .unwrap_or_else(|| Err(format!("unknown command `{command}`")))
}

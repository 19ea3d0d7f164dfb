//! Passes requests on to the next extension, many at once. The first byte counts the remaining passes, and
//! each extension adds its name to the answer.

use std::{collections::HashMap, process::ExitCode};

use weir_sdk::raw::{
    channel::{self, Message},
    config, peers,
    requests::{self, Options},
    types::{Error, HandlerError, MessageId},
};

fn main() -> ExitCode {
    match relay() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn relay() -> Result<(), Error> {
    let setting = |key| config::get(key).ok().flatten().unwrap_or_default();
    channel::serve(&setting("contract"), &["pass".to_owned()])?;
    let (name, next_contract) = (peers::own_name(), setting("next"));
    let mut next = None;
    let mut passed_on: HashMap<MessageId, MessageId> = HashMap::new();
    while let Some(message) = channel::receive() {
        match message {
            Message::Request(request) => match request.payload.split_first() {
                Some((hops @ 1.., rest)) => {
                    let target = match next {
                        Some(target) => target,
                        // The next extension may have started later.
                        None => *next.insert(requests::open(&next_contract, "pass", None)?),
                    };
                    let options = Options { timeout_ms: None, parent: Some(request.id) };
                    match requests::send(target, &[&[hops - 1], rest].concat(), options) {
                        Ok(sent) => drop(passed_on.insert(sent, request.id)),
                        Err(error) => channel::respond(request.id, Err(&failed(&error)))?,
                    }
                }
                _ => channel::respond(request.id, Ok(&[&request.payload, name.as_bytes()].concat()))?,
            },
            Message::Response(response) => {
                if let Some(request) = passed_on.remove(&response.id) {
                    match response.outcome {
                        Ok(answer) => channel::respond(request, Ok(&[&answer, name.as_bytes()].concat()))?,
                        Err(error) => channel::respond(request, Err(&failed(&error)))?,
                    }
                }
            }
            Message::Event(_) | Message::Job(_) => {}
        }
    }
    Ok(())
}

fn failed(error: &Error) -> HandlerError {
    HandlerError { code: "next".to_owned(), message: format!("{error:?}") }
}

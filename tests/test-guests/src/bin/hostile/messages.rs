//! Messages: too many, too large, answered wrongly.

use std::hint::black_box;

use test_guests::{
    PATIENT,
    words::{count, number, text, word},
};
use weir_sdk::raw::{
    channel::{self, Message},
    events, lifecycle,
    log::{self, Field, Level},
    queues, requests,
};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str, request: u64) -> Outcome {
    Some(match command {
        "echo" => Ok(rest.to_owned()),
        "subscribe" => events::subscribe(rest).map(text).map_err(text),
        "publish" => publish(rest),
        "call" => call(rest),
        "send" => send(rest),
        "answer-twice" => Ok(answer_twice(request)),
        "answer" => number(rest).and_then(|id| channel::respond(id, Ok(b"")).map(text).map_err(text)),
        "answer-late" => answer_late(request),
        "hand-over" => hand_over(rest, request),
        "large-error" => count(rest).map(|bytes| large_error(request, bytes)),
        "publish-and-receive" => publish_and_receive(rest, || {}),
        "work-and-receive" => {
            let (turns, topic) = word(rest);
            count(turns).and_then(|turns| publish_and_receive(topic, || work(turns)))
        }
        _ => return None,
    })
}

/// `publish TIMES BYTES TOPIC`: returns the numbers of deliveries and losses.
fn publish(rest: &str) -> Result<String, String> {
    let (times, rest) = word(rest);
    let (bytes, topic) = word(rest);
    let payload = vec![b'x'; count(bytes)?];
    let (mut delivered, mut shed) = (0, 0);
    for _ in 0..number(times)? {
        let receipt = events::publish(topic, &payload, PATIENT).map_err(text)?;
        delivered += receipt.delivered;
        shed += receipt.shed;
    }
    Ok(format!("delivered {delivered}, shed {shed}"))
}

/// `call BYTES CONTRACT`.
fn call(rest: &str) -> Result<String, String> {
    let (target, payload) = open(rest)?;
    requests::call(target, &payload, PATIENT).map(|answer| answer.len().to_string()).map_err(text)
}

/// `send BYTES CONTRACT`: sends until it is refused. Returns the number of sent requests, and the error.
fn send(rest: &str) -> Result<String, String> {
    let (target, payload) = open(rest)?;
    let mut sent = 0;
    loop {
        match requests::send(target, &payload, PATIENT) {
            Ok(_) => sent += 1,
            Err(error) => return Ok(format!("{sent}, then {error:?}")),
        }
    }
}

fn open(rest: &str) -> Result<(u32, Vec<u8>), String> {
    let (bytes, contract) = word(rest);
    Ok((requests::open(contract, "run", None).map_err(text)?, vec![b'x'; count(bytes)?]))
}

/// Answers the request twice. Prints the result of the second answer.
fn answer_twice(request: u64) -> String {
    let first = channel::respond(request, Ok(b"first"));
    let second = channel::respond(request, Ok(b"second"));
    println!("{first:?}, then {second:?}");
    String::new()
}

/// Waits until the requester has given up, then answers. Prints the result.
fn answer_late(request: u64) -> Result<String, String> {
    // The test decides when `gate@1` answers.
    let gate = requests::open("gate@1", "pass", None).map_err(text)?;
    requests::call(gate, b"", PATIENT).map_err(text)?;
    println!("{:?}", channel::respond(request, Ok(b"late")));
    Ok(String::new())
}

/// `hand-over WHAT BYTES`: a payload or a name of so many bytes. Returns what comes of it.
fn hand_over(rest: &str, request: u64) -> Result<String, String> {
    let (what, bytes) = word(rest);
    let long = "x".repeat(count(bytes)?);
    let payload = long.as_bytes();
    Ok(match what {
        "answer" => text(channel::respond(request, Ok(payload))),
        "answer-and-receive" => text(channel::respond_and_receive(request, Ok(payload)).map(drop)),
        "event" => text(events::publish("t", payload, PATIENT)),
        "event-to" => text(events::publish_to("sleeper", "t", payload, PATIENT)),
        "job" => text(queues::put(0, payload, PATIENT)),
        "topic" => text(events::publish(&long, b"", PATIENT)),
        "receiver" => text(events::publish_to(&long, "t", b"", PATIENT)),
        "pattern" => text(events::subscribe(&long)),
        "called-contract" => text(requests::open(&long, "run", None)),
        "called-operation" => text(requests::open("sleeper@1", &long, None)),
        "provider" => text(requests::open("sleeper@1", "run", Some(&long))),
        "queue" => text(queues::open(&long)),
        "contract" => text(channel::serve(&long, &["run".to_owned()])),
        "operation" => text(channel::serve("hostile@1", &[long])),
        "operations" => text(channel::serve("hostile@1", &vec![String::new(); long.len()])),
        "done" => text(queues::done_all(&vec![0; long.len()])),
        "log" => {
            let field = Field { name: long.clone(), value: long.clone() };
            log::write(Level::Info, &long, &[field]);
            "done".to_owned()
        }
        "fields" => {
            let field = Field { name: "n".to_owned(), value: String::new() };
            log::write(Level::Info, "fields", &vec![field; long.len()]);
            "done".to_owned()
        }
        "reason" => {
            lifecycle::interrupted(&long);
            lifecycle::ready();
            "done".to_owned()
        }
        _ => return Err(format!("unknown `{what}`")),
    })
}

fn large_error(request: u64, bytes: usize) -> String {
    let error = weir_sdk::raw::types::HandlerError { code: "x".repeat(bytes), message: "y".repeat(bytes) };
    println!("{:?}", channel::respond(request, Err(&error)));
    String::new()
}

/// Publishes to itself and receives, with some work for each event, until stop. Returns the number of rounds.
fn publish_and_receive(topic: &str, work: impl Fn()) -> Result<String, String> {
    events::subscribe(topic).map_err(text)?;
    let mut times = 0_u64;
    loop {
        events::publish(topic, b"", PATIENT).map_err(text)?;
        match channel::receive() {
            Some(Message::Event(_)) => {
                times += 1;
                work();
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(times.to_string())
}

fn work(turns: usize) {
    for turn in 0..turns {
        black_box(turn);
    }
}

//! Kinds that send messages that stay waiting, of one sort each: `request`, `response`, `event` or `job`.

use std::fmt::Debug;

use weir_sdk::raw::{
    channel::{self, Message},
    events, queues,
    requests::{self, Options},
};

use crate::quiet;

const PATIENT: Options = Options { timeout_ms: Some(3_600_000), parent: None };

const PAYLOAD: &[u8] = b"sixteen bytes ok";

pub(crate) fn run(kind: &str) -> Option<Result<(), String>> {
    Some(match kind {
        "fill-request" => requests_to(kind, "mute@1", "hear"),
        "fill-response" => requests_to(kind, "idle.n0@1", "echo"),
        "fill-event" => fill(kind, || {
            let receipt = events::publish("paced", PAYLOAD, PATIENT).map_err(text)?;
            if receipt.delivered == 1 { Ok(()) } else { Err(text(receipt)) }
        }),
        "fill-job" => {
            let queue = queues::open("jobs");
            fill(kind, || {
                queues::put(*queue.as_ref().map_err(text)?, PAYLOAD, PATIENT).map(drop).map_err(text)
            })
        }
        _ => return None,
    })
}

fn requests_to(kind: &str, contract: &str, operation: &str) -> Result<(), String> {
    let target = requests::open(contract, operation, None).map_err(text)?;
    fill(kind, || requests::send(target, PAYLOAD, PATIENT).map(drop).map_err(text))
}

/// Sends as many as a request says, answers, and then receives nothing more.
fn fill(kind: &str, mut send: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    channel::serve(&format!("{kind}@1"), &["fill".to_owned()]).map_err(text)?;
    while let Some(message) = channel::receive() {
        let Message::Request(request) = message else { continue };
        let count = String::from_utf8(request.payload).map_err(text)?.parse::<u32>().map_err(text)?;
        for _ in 0..count {
            send()?;
        }
        channel::respond(request.id, Ok(count.to_string().as_bytes())).map_err(text)?;
        return quiet::asleep_in_poll();
    }
    Ok(())
}

fn text(error: impl Debug) -> String {
    format!("{error:?}")
}

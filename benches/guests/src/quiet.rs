//! Kinds that take little: they are measured, or measure something.

use wasip2::clocks::monotonic_clock::subscribe_duration;
use weir_sdk::raw::{
    channel::{self, Message},
    lifecycle, requests,
};

use crate::{hostile, messages::text};

pub(crate) fn run(kind: &str) -> Option<Result<(), String>> {
    Some(match kind {
        "asleep-in-receive" => asleep_in_receive(),
        "asleep-in-poll" => asleep_in_poll(),
        "asleep-in-call" => asleep_in_call(),
        "mute" => mute(),
        "probe" => probe(),
        _ => return None,
    })
}

fn asleep_in_receive() -> Result<(), String> {
    while channel::receive().is_some() {}
    Ok(())
}

pub(crate) fn asleep_in_poll() -> Result<(), String> {
    lifecycle::ready();
    loop {
        subscribe_duration(hostile::HOUR).block();
    }
}

/// Serves an operation, and never receives.
fn mute() -> Result<(), String> {
    channel::serve("mute@1", &["hear".to_owned()]).map_err(text)?;
    asleep_in_poll()
}

/// Main's `gate@1` never answers.
fn asleep_in_call() -> Result<(), String> {
    let gate = requests::open("gate@1", "pass", None).map_err(text)?;
    lifecycle::ready();
    loop {
        drop(requests::call(gate, b"", hostile::PATIENT));
    }
}

/// Serves operations with a known amount of work. Each answers the number of bytes that `fill` fills.
fn probe() -> Result<(), String> {
    let operations = ["nothing", "fill", "count", "divide", "chase"].map(str::to_owned);
    let first = channel::serve("probe@1", &operations).map_err(text)?;
    let mut room = hostile::all_memory();
    while let Some(message) = channel::receive() {
        let Message::Request(request) = message else { continue };
        match request.operation - first {
            1 => hostile::fill(&mut room),
            2 => hostile::spin(),
            3 => hostile::divide(),
            4 => hostile::chase(&room),
            _ => {}
        }
        channel::respond(request.id, Ok(room.len().to_string().as_bytes())).map_err(text)?;
    }
    Ok(())
}

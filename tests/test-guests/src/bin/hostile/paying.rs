//! Calls that cost the host something: a given number, or until the host refuses.

use test_guests::{
    PATIENT,
    words::{count, number, text, word},
};
use weir_sdk::raw::{
    channel, events,
    log::{self, Level},
    requests,
};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str, request: u64) -> Outcome {
    Some(match command {
        "pay" => pay(rest, request),
        "open-all" => Ok(until_refused(|n| requests::open(rest, &format!("operation-{n}"), None))),
        "subscribe-all" => Ok(until_refused(|n| events::subscribe(&format!("{rest}.n{n}")))),
        "subscribe-variants" => subscribe_variants(rest),
        _ => return None,
    })
}

/// `pay WAY TIMES BYTES`: passes the same payload again and again.
fn pay(rest: &str, request: u64) -> Result<String, String> {
    let (way, rest) = word(rest);
    let (times, bytes) = word(rest);
    let (times, payload) = (number(times)?, "x".repeat(count(bytes)?));
    let target = requests::open("sink@1", "take", None).map_err(text)?;
    for _ in 0..times {
        match way {
            "call" => drop(requests::call(target, payload.as_bytes(), PATIENT).map_err(text)?),
            "send" => drop(requests::send(target, payload.as_bytes(), PATIENT).map_err(text)?),
            "publish" => drop(events::publish("own", payload.as_bytes(), PATIENT).map_err(text)?),
            // All but the first fail: the request is answered by then.
            "respond" => drop(channel::respond(request, Ok(payload.as_bytes()))),
            "log" => log::write(Level::Info, &payload, &[]),
            _ => return Err(format!("unknown way `{way}`")),
        }
    }
    Ok(String::new())
}

/// The number of successes, and the error.
fn until_refused<T, E: std::fmt::Debug>(act: impl Fn(usize) -> Result<T, E>) -> String {
    let refused = (0..).find_map(|done| Some((done, act(done).err()?)));
    refused.map_or_else(String::new, |(done, error)| format!("{done}, then {error:?}"))
}

/// `subscribe-variants COUNT TOPIC`: subscribes to this many patterns that match the topic, and never
/// receives.
fn subscribe_variants(rest: &str) -> Result<String, String> {
    let (variants, topic) = word(rest);
    for variant in 0..count(variants)? {
        let segments = topic.split('.').enumerate();
        let segments = segments.map(|(place, segment)| if variant >> place & 1 == 1 { "*" } else { segment });
        events::subscribe(&segments.collect::<Vec<_>>().join(".")).map_err(text)?;
    }
    crate::obey("sleep", 0)
}

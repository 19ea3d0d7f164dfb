//! Pollables: kept, repeated, dropped in the wrong order, and far too many.

use test_guests::{
    PATIENT,
    words::{count, text, word},
};
use wasip2::{
    cli::stdout::get_stdout,
    clocks::monotonic_clock::subscribe_duration,
    io::poll::{Pollable, poll},
};
use weir_sdk::raw::{channel, events, lifecycle};

use crate::Outcome;

const DAY: u64 = 86_400_000_000_000;

pub(crate) fn run(command: &str, rest: &str) -> Outcome {
    Some(match command {
        "hoard-pollables" => hoard(),
        "poll-repeated" => count(rest).map(|times| {
            let now = subscribe_duration(0);
            poll(&vec![&now; times]).len().to_string()
        }),
        "poll-distinct" => count(rest).map(distinct),
        "poll-nothing" => Ok(text(poll(&[]))),
        "poll-kept" => kept(rest),
        "drop-parent-first" => {
            let stdout = get_stdout();
            let child = stdout.subscribe();
            drop(stdout);
            drop(child);
            Ok(String::new())
        }
        "sleep" => sleep(rest),
        _ => return None,
    })
}

/// Subscribes to a topic, if one is given, says that it is ready, and never receives.
fn sleep(topic: &str) -> Result<String, String> {
    if !topic.is_empty() {
        events::subscribe(topic).map_err(text)?;
    }
    lifecycle::ready();
    subscribe_duration(DAY).block();
    Ok(String::new())
}

/// Makes pollables of the inbox until that ends it.
fn hoard() -> ! {
    let mut hoard = Vec::new();
    loop {
        hoard.push(channel::subscribe_inbox());
    }
}

/// Polls this many timers, of which one is due. Returns that one.
fn distinct(pollables: usize) -> String {
    let mut timers: Vec<Pollable> = (1..pollables).map(|_| subscribe_duration(DAY)).collect();
    timers.push(subscribe_duration(0));
    text(poll(&timers.iter().collect::<Vec<_>>()))
}

/// `poll-kept TIMES TOPIC`: polls three pollables of the inbox many times, through a subscription and its
/// end, and drops the middle one first. Returns how often one was ready.
fn kept(rest: &str) -> Result<String, String> {
    let (times, topic) = word(rest);
    let before = channel::subscribe_inbox();
    let subscription = events::subscribe(topic).map_err(text)?;
    let between = channel::subscribe_inbox();
    events::publish(topic, b"waits", PATIENT).map_err(text)?;
    // The event is there: a receive would not wait.
    let with_event = poll(&[&before, &between]).len();
    events::unsubscribe(subscription).map_err(text)?;
    let after = channel::subscribe_inbox();
    drop(between);
    let ready = (0..count(times)?).filter(|_| before.ready() || after.ready()).count();
    drop(before);
    Ok(format!("{with_event} ready with an event, {ready} of {times} without, at last {}", after.ready()))
}

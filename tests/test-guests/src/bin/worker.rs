//! Takes jobs of a queue without end. It publishes each job as `ID DELIVERIES PAYLOAD` under `worked.NAME`,
//! with its own name, and then obeys the payload. Its settings, in `wasi:config`:
//!
//! | key | meaning |
//! | --- | --- |
//! | `queue` | the queue |
//! | `mode` | how it takes: `one-by-one`, or `next`, which takes one and then says that it is done |
//!
//! | payload begins with | what it does |
//! | --- | --- |
//! | `die` | it traps |
//! | `end POINT HOW` | it ends: `first`, before it publishes; `midway`, the same after a sleep; `published`; or `done`, as the last that it does |
//! | `loop` | it never comes back |
//! | `give-back` | it gives the job back |
//! | `hold` | it keeps the job in hand: in `next` it takes another, in `one-by-one` it never comes back |
//! | `wait MS` | the job is done after so many milliseconds |
//! | anything else | the job is done |
//!
//! `HOW` is `trap`, `exit`, `finish` (exit with 0) or `fuel` (run until the fuel is used up).

use std::{
    hint::black_box,
    process::{self, ExitCode},
};

use test_guests::{
    PATIENT,
    words::{number, text, word},
};
use wasip2::clocks::monotonic_clock::subscribe_duration;
use weir_sdk::raw::{
    channel::{self, Job, Message},
    config, events, peers,
    queues::{self, Taking},
};

const DAY: u64 = 86_400_000_000_000;

fn main() -> ExitCode {
    test_guests::ended(run())
}

fn run() -> Result<(), String> {
    let queue = queues::open(&setting("queue")?).map_err(text)?;
    let mode = match &*setting("mode")? {
        "one-by-one" => Taking::OneByOne,
        "next" => Taking::Next(1),
        other => return Err(format!("unknown mode `{other}`")),
    };
    queues::take(queue, mode).map_err(text)?;
    let topic = format!("worked.{}", peers::own_name());
    while let Some(message) = channel::receive() {
        let Message::Job(job) = message else { continue };
        work(&topic, &job, mode)?;
        if let Taking::Next(_) = mode {
            queues::take(queue, mode).map_err(text)?;
        }
    }
    Ok(())
}

fn work(topic: &str, job: &Job, mode: Taking) -> Result<(), String> {
    let payload = String::from_utf8_lossy(&job.payload);
    end_if(&payload, "first");
    if payload.starts_with("end midway") {
        subscribe_duration(1_000_000).block();
    }
    end_if(&payload, "midway");
    let line = format!("{} {} {payload}", job.id, job.deliveries);
    events::publish(topic, line.as_bytes(), PATIENT).map_err(text)?;
    end_if(&payload, "published");
    match (word(&payload), mode) {
        (("die", _), _) => process::abort(),
        (("loop", _), _) => spin(),
        (("give-back", _), _) => return queues::give_back(job.id).map_err(text),
        (("hold", _), Taking::Next(_)) => return Ok(()),
        (("hold", _), Taking::OneByOne) => subscribe_duration(DAY).block(),
        (("wait", ms), _) => subscribe_duration(number(word(ms).0)?.saturating_mul(1_000_000)).block(),
        _ => {}
    }
    if let Taking::Next(_) = mode {
        queues::done(job.id).map_err(text)?;
    }
    // One by one, the next receive would mark it as done.
    end_if(&payload, "done");
    Ok(())
}

/// Ends the instance, if the job asks for it at this point.
fn end_if(payload: &str, here: &str) {
    let ("end", rest) = word(payload) else { return };
    let (point, rest) = word(rest);
    match word(rest).0 {
        _ if point != here => {}
        "fuel" => spin(),
        "exit" => process::exit(1),
        "finish" => process::exit(0),
        _ => process::abort(),
    }
}

fn spin() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

fn setting(key: &str) -> Result<String, String> {
    config::get(key).ok().flatten().ok_or_else(|| format!("no `{key}`"))
}

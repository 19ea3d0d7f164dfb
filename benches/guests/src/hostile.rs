//! Kinds that take all they can, each in its own way, and never stop.

use std::{hint::black_box, io::Write};

use wasip2::{
    clocks::monotonic_clock::{self, subscribe_duration},
    io::poll::{Pollable, poll},
    random::random::get_random_bytes,
};
use weir_sdk::raw::{
    channel::{self, Message},
    config, events, lifecycle, log, peers,
    requests::{self, Options},
};

use crate::messages::text;

/// A timer that no test sees end.
pub(crate) const HOUR: u64 = 3_600_000_000_000;

/// The operator's default timeout, and no parent request.
pub(crate) const PATIENT: Options = Options { timeout_ms: None, parent: None };

type Step = Box<dyn FnMut()>;

pub(crate) fn run(kind: &str) -> Result<(), String> {
    let mut step: Step = match kind {
        "spin" => Box::new(|| spin()),
        "fill" => filler(),
        "divide" => Box::new(|| divide()),
        "chase" => {
            let room = all_memory();
            Box::new(move || chase(&room))
        }
        "grow" => Box::new(|| grow()),
        "balls" => player()?,
        "output" => Box::new(output),
        "random" => Box::new(|| {
            black_box(get_random_bytes(4096));
        }),
        "poll" => poller(),
        "recursion" => Box::new(|| {
            black_box(recurse(2_000));
        }),
        "flood" => flooder()?,
        "receive" => receiver()?,
        "publish" => publisher()?,
        "clock" => Box::new(|| {
            black_box(monotonic_clock::now());
        }),
        _ => return Err(format!("unknown kind `{kind}`")),
    };
    lifecycle::ready();
    loop {
        step();
    }
}

pub(crate) fn spin() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

pub(crate) fn divide() -> ! {
    let mut value = u64::MAX;
    loop {
        value = u64::MAX / black_box(value | 3);
    }
}

/// Follows pointers without end: each address depends on the last value.
pub(crate) fn chase(room: &[u8]) -> ! {
    const LINE: usize = 64;
    let lines = (room.len() / LINE).next_power_of_two() / 2;
    let mut line = 0_usize;
    loop {
        let found = room.get(line * LINE).copied().map_or(0, usize::from);
        // A full period: the multiplier is 1 more than a multiple of 4, the increment odd.
        line = black_box(line.wrapping_mul(1_664_525).wrapping_add(1_013_904_223 + 2 * found) & (lines - 1));
    }
}

/// All available memory, in one piece.
pub(crate) fn all_memory() -> Vec<u8> {
    const PAGE: usize = 64 * 1024;
    let mut room = Vec::new();
    let mut pages = 1024;
    while room.try_reserve_exact(pages * PAGE).is_err() {
        pages -= 1;
    }
    room.resize(room.capacity(), 0);
    room
}

pub(crate) fn fill(room: &mut [u8]) {
    room.fill(black_box(1));
    black_box(room);
}

fn filler() -> Step {
    let mut room = all_memory();
    Box::new(move || fill(&mut room))
}

fn grow() -> ! {
    loop {
        black_box(core::arch::wasm32::memory_grow::<0>(1));
    }
}

/// Throws back every ball. The second of the two to start throws the first ones.
fn player() -> Result<Step, String> {
    events::subscribe("ball").map_err(text)?;
    let other = config::get("other").ok().flatten().ok_or("no `other`")?;
    for _ in 0..8 {
        drop(events::publish_to(&other, "ball", b"", PATIENT));
    }
    Ok(Box::new(move || {
        if let Some(Message::Event(_)) = channel::receive() {
            drop(events::publish_to(&other, "ball", b"", PATIENT));
        }
    }))
}

fn output() {
    log::write(log::Level::Info, "a line that says nothing", &[]);
    drop(writeln!(std::io::stdout(), "a line that says nothing"));
}

/// Waits for hundreds of timers, and for one that has passed.
fn poller() -> Step {
    let far = std::iter::repeat_with(|| subscribe_duration(HOUR)).take(200);
    let pollables: Vec<Pollable> = far.chain([subscribe_duration(0)]).collect();
    Box::new(move || {
        let all: Vec<&Pollable> = pollables.iter().collect();
        black_box(poll(&all));
    })
}

#[inline(never)]
fn recurse(depth: u64) -> u64 {
    if depth == 0 { 0 } else { black_box(recurse(depth - 1)).rotate_left(3) ^ depth }
}

/// Calls an extension that never receives. Every answer is a timeout.
fn flooder() -> Result<Step, String> {
    let mute = requests::open("mute@1", "hear", None).map_err(text)?;
    Ok(Box::new(move || {
        let options = Options { timeout_ms: Some(1), parent: None };
        if requests::send(mute, b"", options).is_err() {
            drop(requests::open("mute@1", "hear", None));
            while channel::receive_within(0).is_ok_and(|next| next.is_some()) {}
        }
    }))
}

/// Fills its inbox, and empties it without waiting. The publisher fills it, too.
fn receiver() -> Result<Step, String> {
    events::subscribe("own").map_err(text)?;
    let own = peers::own_name();
    Ok(Box::new(move || {
        for _ in 0..256 {
            drop(events::publish_to(&own, "own", b"", PATIENT));
        }
        while channel::receive_within(0).is_ok() {}
    }))
}

fn publisher() -> Result<Step, String> {
    events::subscribe("own").map_err(text)?;
    Ok(Box::new(|| drop(events::publish("own", b"", PATIENT))))
}

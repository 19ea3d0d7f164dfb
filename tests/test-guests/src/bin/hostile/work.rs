//! Processor, memory and randomness.

use std::hint::black_box;

use test_guests::words::{count, number};
use wasip2::random::{insecure, random};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str) -> Outcome {
    Some(match command {
        "spin" => spin(),
        "fill" => count(rest).map(|bytes| fill(bytes)),
        "random" => number(rest).map(|bytes| random::get_random_bytes(bytes).len().to_string()),
        "insecure-random" => {
            number(rest).map(|bytes| insecure::get_insecure_random_bytes(bytes).len().to_string())
        }
        _ => return None,
    })
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Fills the same memory without end, each time with one bulk operation.
fn fill(bytes: usize) -> ! {
    let mut memory = vec![0_u8; bytes];
    loop {
        memory.fill(black_box(1));
        black_box(&memory);
    }
}

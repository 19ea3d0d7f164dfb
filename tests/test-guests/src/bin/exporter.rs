//! Exports functions, well and badly behaved. Knows nothing of Weir.

#![expect(unsafe_code, missing_docs, reason = "the generated bindings")]

use std::sync::atomic::{AtomicU32, Ordering};

use wasip2::clocks::monotonic_clock::subscribe_duration;

use self::exports::test::exports::values::{self, Color, Everything, Misdeed, Point, Problem};

wit_bindgen::generate!({ path: "exports.wit", world: "exporter" });

static CALLS: AtomicU32 = AtomicU32::new(0);

struct Exporter;

export!(Exporter);

impl Guest for Exporter {
    fn twice(number: u32) -> u64 {
        2 * u64::from(number)
    }
}

impl values::Guest for Exporter {
    fn echo(value: Everything) -> Everything {
        value
    }

    fn reverse(mut data: Vec<u8>) -> Vec<u8> {
        data.reverse();
        data
    }

    fn add(a: i32, b: Option<i32>) -> i32 {
        a.wrapping_add(b.unwrap_or(1))
    }

    fn count() -> u32 {
        CALLS.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn fail(how: Color) -> Result<String, Problem> {
        match how {
            Color::Red => Err(Problem::Odd(Point { x: 1, y: -1 })),
            Color::DarkGreen => Err(Problem::NotFound),
        }
    }

    fn fail_in_words(words: String) -> Result<(), String> {
        if words.is_empty() { Ok(()) } else { Err(words) }
    }

    fn fail_by_color(color: Color) -> Result<(), Color> {
        Err(color)
    }

    fn bytes(length: u32) -> Vec<u8> {
        vec![7; usize::try_from(length).unwrap_or_default()]
    }

    fn numbers(length: u32) -> Vec<u32> {
        (0..length).collect()
    }

    fn nothing() {}

    fn misbehave(how: Misdeed) -> u32 {
        match how {
            Misdeed::Trap => panic!("it was told to"),
            Misdeed::Spin => loop {
                std::hint::spin_loop();
            },
            Misdeed::Wait => {
                subscribe_duration(3_600_000_000_000).block();
                0
            }
            Misdeed::TakeMemory => {
                let mut taken = Vec::new();
                loop {
                    taken.push(vec![1_u8; 1 << 20]);
                    std::hint::black_box(&taken);
                }
            }
            Misdeed::Exit => std::process::exit(0),
        }
    }
}

fn main() {}

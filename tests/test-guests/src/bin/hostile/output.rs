//! Output: too much of it, in pieces that are too large, and of the wrong kind.

use std::io::Write;

use test_guests::words::{count, number, text};
use wasip2::cli::{stdin::get_stdin, stdout::get_stdout};
use weir_sdk::raw::log::{self, Level};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str) -> Outcome {
    Some(match command {
        "lines" => lines(rest),
        "panic" => count(rest).map(|bytes| panic!("{}", "cheese ".repeat(bytes / 7))),
        "log" => {
            log::write(Level::Warn, rest, &[]);
            Ok(String::new())
        }
        "bytes" => bytes(rest),
        "write-zeroes" => number(rest).and_then(|n| get_stdout().write_zeroes(n).map(text).map_err(text)),
        "block-zeroes" => {
            number(rest).and_then(|n| get_stdout().blocking_write_zeroes_and_flush(n).map(text).map_err(text))
        }
        "write" => count(rest).and_then(|n| get_stdout().write(&vec![b'x'; n]).map(text).map_err(text)),
        "block-write" => count(rest)
            .and_then(|n| get_stdout().blocking_write_and_flush(&vec![b'x'; n]).map(text).map_err(text)),
        "splice" => number(rest).and_then(|n| get_stdout().splice(&get_stdin(), n).map(text).map_err(text)),
        _ => return None,
    })
}

/// `lines COUNT WHERE`: numbered lines, to `stdout`, `stderr` or `log`.
fn lines(rest: &str) -> Result<String, String> {
    let (lines, to) = test_guests::words::word(rest);
    for line in 0..number(lines)? {
        match to {
            "stdout" => println!("line {line}"),
            "stderr" => eprintln!("line {line}"),
            _ => log::write(Level::Info, &format!("line {line}"), &[]),
        }
    }
    Ok(String::new())
}

/// `bytes HEX`: writes exactly these to standard output.
fn bytes(hex: &str) -> Result<String, String> {
    let digits: Vec<u8> = hex.chars().filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect();
    let mut stdout = std::io::stdout();
    stdout.write_all(&bytes).and_then(|()| stdout.flush()).map(|()| String::new()).map_err(text)
}

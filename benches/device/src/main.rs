//! One process to measure from outside: `weir FILE [COUNT]` is Main as on a device, without a compiler.
//! `threads COUNT` and `polled COUNT` do the same natively.
//!
//! It prints `ready` when all of it waits. It then answers each line `CONTRACT OPERATION ARGUMENT` with a
//! line, and ends with its input. Between two lines its first thread sleeps.

#![expect(clippy::print_stdout, reason = "it talks to its parent process")]

mod native;
mod weir;

use std::io;

use anyhow::{Context, Result, bail};

type Answering = Box<dyn FnMut(&str, &str, &str) -> Result<String>>;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut answering = match *arguments {
        ["weir", file] => weir::start(file.as_ref(), None)?,
        ["weir", file, count] => weir::start(file.as_ref(), Some(count.parse()?))?,
        ["threads", count] => native::threads(count.parse()?)?,
        ["polled", count] => native::polled(count.parse()?)?,
        _ => bail!("usage: weir-device weir FILE [COUNT] | threads COUNT | polled COUNT"),
    };
    println!("ready");
    for line in io::stdin().lines() {
        let line = line?;
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().context("a call is `CONTRACT OPERATION ARGUMENT`");
        println!("{}", answering(word()?, word()?, word()?)?);
    }
    Ok(())
}

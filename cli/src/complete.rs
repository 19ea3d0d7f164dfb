//! Completion in a shell, with names that a running Main knows.
//!
//! A shell asks by starting `weir` with the variable `COMPLETE`. Main has a second to answer; without an answer there
//! are no names, and no error.

mod arguments;
mod bash;
mod names;

use std::io;

use clap::CommandFactory;
use clap_complete::{
    CompleteEnv, Shell,
    env::{Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh},
};

use self::bash::Bash;
#[cfg(feature = "tools")]
pub(crate) use self::names::contract_or_file;
pub(crate) use self::names::{argument, contract, extension, operation, queue, topic, topic_pattern};
use crate::args::Args;

const VARIABLE: &str = "COMPLETE";
const PROGRAM: &str = "weir";

/// Answers a shell that asks, and ends the process. Returns if none does.
pub(crate) fn answer() {
    let shells = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);
    CompleteEnv::with_factory(Args::command).var(VARIABLE).shells(shells).complete();
}

/// The script that makes a shell ask.
pub(crate) fn script(shell: Shell) -> io::Result<Vec<u8>> {
    let completer: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        other => return Err(io::Error::other(format!("`{other}` has no completions"))),
    };
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    Ok(script)
}

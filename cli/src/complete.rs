//! Completion in a shell, with names that a running Main knows.
//!
//! A shell asks by starting `weir` with the variable `COMPLETE`. Main has a second to answer; without an answer there
//! are no names, and no error.

mod arguments;
mod names;

use std::{ffi::OsString, io, path::Path};

use clap::CommandFactory;
use clap_complete::{
    CompleteEnv, Shell,
    env::{self, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh},
};

#[cfg(feature = "tools")]
pub(crate) use self::names::contract_or_file;
pub(crate) use self::names::{argument, contract, extension, operation, queue, topic, topic_pattern};
use crate::args::Args;

const VARIABLE: &str = "COMPLETE";
const PROGRAM: &str = "weir";

/// If a shell asks for completions, answers it and ends the process. Otherwise returns.
pub(crate) fn answer() {
    let shells = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);
    CompleteEnv::with_factory(Args::command).var(VARIABLE).shells(shells).complete();
}

/// The script that makes a shell ask `weir` for completions.
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

/// The script for bash. It needs bash 4.4.
const SCRIPT: &str = include_str!("complete/weir.bash");

/// Completes for bash with a script of our own. The script of `clap_complete` loses names with characters at which bash
/// breaks words.
struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Bash.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buffer: &mut dyn io::Write,
    ) -> io::Result<()> {
        let quoted = format!("'{}'", completer.replace('\'', r"'\''"));
        let script = SCRIPT.replace("VARIABLE", var).replace("BIN", bin).replace("COMPLETER", &quoted);
        buffer.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        dir: Option<&Path>,
        buffer: &mut dyn io::Write,
    ) -> io::Result<()> {
        env::Bash.write_complete(command, words, dir, buffer)
    }
}

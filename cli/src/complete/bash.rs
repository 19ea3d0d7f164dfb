//! Bash, with a script of our own: that of `clap_complete` loses the names in which bash breaks words.

use std::{ffi::OsString, io, path::Path};

use clap_complete::env::{self, EnvCompleter};

/// Needs bash 4.4.
const SCRIPT: &str = include_str!("weir.bash");

pub(super) struct Bash;

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

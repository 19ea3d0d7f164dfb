//! What goes to stdout: a reader that leaves is no error, and nothing from outside can play with the
//! terminal.

use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    os::fd::AsFd,
};

use tokio::{io::Interest, net::unix::pipe};
use weir_host::names::{harmless, is_harmful};

use crate::logging;

/// Whoever read stdout has gone.
#[derive(Debug, thiserror::Error)]
#[error("the output was closed")]
pub(crate) struct OutputClosed;

/// Writes bytes as they are.
pub(crate) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        other => Ok(other?),
    }
}

/// Waits until whoever reads stdout has gone, which a write would notice only when there is something
/// to write.
pub(crate) async fn reader_left() -> OutputClosed {
    // A clone, only to watch it: that it is in blocking mode does not matter.
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(pipe::Sender::from_owned_fd_unchecked);
    match stdout {
        Ok(stdout) if stdout.ready(Interest::ERROR).await.is_ok_and(|ready| ready.is_error()) => OutputClosed,
        // A file, which nobody reads along.
        _ => std::future::pending().await,
    }
}

/// Writes a line.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    write(format!("{text}\n").as_bytes())
}

/// Writes a line of JSON: as it is, or with its characters escaped for a person's terminal.
pub(crate) fn json_line(json: &[u8]) -> anyhow::Result<()> {
    match is_terminal() {
        true => line(&printable_json(&String::from_utf8_lossy(json))),
        false => write(&[json, b"\n"].concat()),
    }
}

/// Says something on stderr; that nobody reads it changes nothing.
pub(crate) fn complain(text: &str) {
    if !logging::append(&format!("{text}\n")) {
        let _nobody_reads = writeln!(io::stderr(), "{text}");
    }
}

/// Whether a person reads along.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes JSON: laid out for a person, on one line for a program.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    if is_terminal() {
        line(&printable_json(&serde_json::to_string_pretty(value)?))
    } else {
        line(&serde_json::to_string(value)?)
    }
}

/// JSON with all escaped that `printable` escapes, and still the same JSON: such characters stand only
/// in its strings, but for the line feeds between its lines.
pub(crate) fn printable_json(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    for character in json.chars() {
        if character != '\n' && is_harmful(character) {
            clean.extend(character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            clean.push(character);
        }
    }
    clean
}

/// `text` with all escaped that could move the cursor, forge a line, turn text around or stand in it unseen.
pub(crate) fn printable(text: &str) -> String {
    harmless(text, usize::MAX)
}

/// A number of things, as in `2 jobs`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_terminal_is_the_same_json_without_harmful_characters() {
        let json = "{\"a\":\"\u{9b}2J\u{202e}é\u{e0041}\"}";
        let clean = printable_json(json);
        assert_eq!(clean, r#"{"a":"\u009b2J\u202eé\udb40\udc41"}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&clean), value(json));
    }
}

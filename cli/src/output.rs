//! What goes to stdout: a reader that leaves is no error, and nothing from outside can play with the
//! terminal.

use std::io::{self, ErrorKind, IsTerminal, Write};

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

/// Writes a line.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    write(format!("{text}\n").as_bytes())
}

/// Whether a person reads along.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes JSON: laid out for a person, on one line for a program.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    line(&if is_terminal() { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? })
}

/// `text` with all escaped that could move the cursor, forge a line or turn text around.
pub(crate) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{2028}'
            | '\u{2029}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => clean.extend(character.escape_default()),
            character if character.is_control() => clean.extend(character.escape_default()),
            character => clean.push(character),
        }
    }
    clean
}

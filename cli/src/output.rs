//! What goes to stdout: a reader that leaves is no error, and nothing from outside can play with the
//! terminal.

use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    os::fd::AsFd,
};

use tokio::{io::Interest, net::unix::pipe};

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
    line_of(text.as_bytes())
}

/// Writes a line of bytes as they are.
pub(crate) fn line_of(bytes: &[u8]) -> anyhow::Result<()> {
    write(&[bytes, b"\n"].concat())
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

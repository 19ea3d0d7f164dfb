//! Writes to stdout and stderr. A reader of stdout that leaves is no failure. `printable` keeps outside text from
//! controlling the terminal. During long work, a line on a terminal's stderr says what is done and for how long.

use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    os::fd::AsFd,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::{io::Interest, net::unix::pipe};
use weir_host::names::{harmless, is_harmful};

use crate::{features, logging};

/// The reader of stdout has left.
#[derive(Debug, thiserror::Error)]
#[error("the output was closed")]
pub(crate) struct OutputClosed;

pub(crate) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        other => Ok(other?),
    }
}

/// Waits until the reader of stdout leaves. A write would notice that only when there is something to write.
pub(crate) async fn reader_left() -> OutputClosed {
    // The clone is only watched, so its blocking mode does not matter.
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(pipe::Sender::from_owned_fd_unchecked);
    match stdout {
        Ok(stdout) if stdout.ready(Interest::ERROR).await.is_ok_and(|ready| ready.is_error()) => OutputClosed,
        // Stdout cannot be watched, as a file that has no reader: this never ends.
        _ => std::future::pending().await,
    }
}

pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    write(format!("{text}\n").as_bytes())
}

/// Writes a line of JSON. On a terminal, harmful characters are escaped.
pub(crate) fn json_line(json: &[u8]) -> anyhow::Result<()> {
    match is_terminal() {
        true => line(&printable_json(&String::from_utf8_lossy(json))),
        false => write(&[json, b"\n"].concat()),
    }
}

/// Writes a line to the log, or to stderr if this process has no log. Ignores errors.
pub(crate) fn complain(text: &str) {
    if !logging::append(&format!("{text}\n")) {
        let _nobody_reads = writeln!(io::stderr(), "{text}");
    }
}

/// Prints that the process that compiled was confined less than it should be, if it was.
pub(crate) fn warn_of_confinement() {
    if let Some(warning) = features::confinement_warning() {
        complain(&format!("warning: {warning}"));
    }
}

/// Whether a person reads stdout.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether the environment allows colours.
pub(crate) fn wants_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes JSON: on a terminal indented and with harmful characters escaped, else on one line.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    if is_terminal() {
        line(&printable_json(&serde_json::to_string_pretty(value)?))
    } else {
        line(&serde_json::to_string(value)?)
    }
}

/// Escapes in JSON the characters that [`printable`] escapes, except line feeds. The value of the JSON stays the same.
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

/// Escapes characters that move the cursor, forge a line, reverse text or are invisible.
pub(crate) fn printable(text: &str) -> String {
    harmless(text, usize::MAX)
}

/// Writes a number and its noun, as in `2 jobs`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The interval at which the elapsed time is drawn.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Does long work, and meanwhile shows a line that says what it is.
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let line = progress_line();
    line.set_message(what.to_owned());
    line.enable_steady_tick(TICK);
    let done = work();
    line.finish_and_clear();
    done
}

/// Makes a line that is drawn below all others. Nothing is drawn if stderr is no terminal.
pub(crate) fn progress_line() -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} {wide_msg}");
    ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
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

//! `weir logs`.

use std::{io::IsTerminal, time::SystemTime};

use crate::{
    args::LogsArgs,
    client::{Client, Route},
    model::LogEntry,
    output::{self, printable},
};

pub(crate) async fn logs(args: LogsArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.target).await?;
    let route = Route::new(&["logs"])
        .with("extension", args.id.as_deref())
        .with("lines", args.lines.map(|lines| lines.to_string()).as_deref())
        .with("follow", args.follow.then_some("true"));
    let lines = client.stream(&route).await?;
    let color =
        std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    lines
        .print(|line| {
            if args.since.is_some_and(|since| is_before(line, since)) {
                Ok(())
            } else if args.json {
                output::json_line(line)
            } else {
                output::line(&human(&serde_json::from_slice(line)?, color))
            }
        })
        .await
}

/// Whether the line is older than `since`. False for entries that this version does not know.
fn is_before(line: &[u8], since: SystemTime) -> bool {
    let Ok(LogEntry::Line { time, .. }) = serde_json::from_slice(line) else { return false };
    humantime::parse_rfc3339(&time).is_ok_and(|time| time < since)
}

fn human(entry: &LogEntry, color: bool) -> String {
    let (time, extension, level, message, fields) = match entry {
        LogEntry::Line { time, extension, level, message, fields } => {
            (time, extension, level, message, fields)
        }
        LogEntry::Missed { missed } => return format!("... {missed} lines came too fast and are not shown"),
    };
    let fields: String =
        fields.iter().map(|(name, value)| printable(&format!(" {name}={value:?}"))).collect();
    let level = printable(&level.to_uppercase());
    let level = match level.as_str() {
        "ERROR" if color => format!("\x1b[31m{level:>5}\x1b[0m"),
        "WARN" if color => format!("\x1b[33m{level:>5}\x1b[0m"),
        _ => format!("{level:>5}"),
    };
    format!("{} {level} [{}] {}{fields}", printable(time), printable(extension), printable(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_starts_with_who_wrote_it_and_ends_with_its_fields() {
        let entry = r#"{"time":"2026-01-01T00:00:00.000Z","extension":"storage","level":"warn","source":"log",
            "message":"slow disk\u001b[2J","fields":[["ms","120"]]}"#;
        assert_eq!(
            human(&serde_json::from_str(entry).unwrap(), false),
            r#"2026-01-01T00:00:00.000Z  WARN [storage] slow disk\u{1b}[2J ms="120""#
        );
    }

    #[test]
    fn lines_that_were_missed_are_counted() {
        let entry = serde_json::from_str(r#"{"missed":7}"#).unwrap();
        assert_eq!(human(&entry, false), "... 7 lines came too fast and are not shown");
    }
}

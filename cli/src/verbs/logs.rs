//! `weir logs`: the log lines of extensions.

use std::time::SystemTime;

use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;

use crate::{
    args::Target,
    client::{Client, Route},
    complete,
    output::{self, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Main keeps 256 KiB of lines. When they are full, the extension with the most bytes loses its oldest line
first.

Examples:
  weir logs -n 50
  weir logs -f storage
  weir logs --since 10min
  weir logs --json | jq 'select(.level == \"error\")'")]
pub(crate) struct Args {
    /// Only the lines of this extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: Option<String>,
    /// Print new lines as they come, until Main ends
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines so far
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
    /// Only lines since this time, as in `2026-11-20T19:47:32Z`, or from so long ago, as in `10min`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<SystemTime>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

/// Reads a moment, or how long ago it was.
fn moment(text: &str) -> Result<SystemTime, String> {
    let ago = || SystemTime::now().checked_sub(humantime::parse_duration(text).ok()?);
    humantime::parse_rfc3339_weak(text).ok().or_else(ago).ok_or_else(|| {
        "it is neither a time, as in `2026-11-20T19:47:32Z`, nor how long ago, as in `10min`".to_owned()
    })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LogEntry {
    Line {
        time: String,
        extension: String,
        level: String,
        message: String,
        #[serde(default)]
        fields: Vec<(String, String)>,
    },
    Missed {
        missed: u64,
    },
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.target).await?;
    let route = Route::new(&["logs"])
        .with("extension", args.id.as_deref())
        .with("lines", args.lines.map(|lines| lines.to_string()).as_deref())
        .with("follow", args.follow.then_some("true"));
    let lines = client.stream(&route).await?;
    let color = output::is_terminal() && output::wants_color();
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

/// Whether the line is older than `since`. Returns false for entries that have no time, or that this version cannot
/// read.
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

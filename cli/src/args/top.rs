//! Arguments of `weir top`.

use std::{ops::RangeInclusive, time::Duration};

use clap::Args as ClapArgs;
use weir_top::SortKey;

use super::Target;

/// More often than that costs Main too much, and less often shows too little.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The key ? shows all keys. R, S and L restart, stop and reload the selected extension, after a question. Figures
are of the time between two looks; LOST and RESTARTS are counted since Main started. Main is asked only while
the view is open. On what is no terminal, `weir ps` and `weir limits` show the same figures once.

Examples:
  weir top
  weir top --sort limit --interval 5s
  weir top --filter backing-off --no-color")]
pub(crate) struct TopArgs {
    /// Time between two looks at Main, from 100ms to 1min
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Sort by this, largest first
    #[arg(long, value_name = "WHAT", default_value = "cpu")]
    pub(crate) sort: SortKey,
    /// Show only extensions and peers with this text in their name or state
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Use no colours; also NO_COLOR
    #[arg(long)]
    pub(crate) no_color: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if INTERVALS.contains(&interval) {
        Ok(interval)
    } else {
        let [least, most] =
            [INTERVALS.start(), INTERVALS.end()].map(|time| humantime::format_duration(*time));
        Err(format!("it is not from {least} to {most}"))
    }
}

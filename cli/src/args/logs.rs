//! Arguments of `weir logs`.

use std::time::SystemTime;

use clap::Args as ClapArgs;
use clap_complete::engine::ArgValueCompleter;

use super::Target;
use crate::complete;

/// A moment, or how long ago it was.
fn moment(text: &str) -> Result<SystemTime, String> {
    let ago = || SystemTime::now().checked_sub(humantime::parse_duration(text).ok()?);
    humantime::parse_rfc3339_weak(text).ok().or_else(ago).ok_or_else(|| {
        "it is neither a time, as in `2026-11-20T19:47:32Z`, nor how long ago, as in `10min`".to_owned()
    })
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Main keeps 256 KiB of lines. When they are full, the extension with the most bytes loses its oldest line
first.

Examples:
  weir logs -n 50
  weir logs -f storage
  weir logs --since 10min
  weir logs --json | jq 'select(.level == \"error\")'")]
pub(crate) struct LogsArgs {
    /// Only the lines of this extension
    #[arg(value_name = "ID")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    pub(crate) id: Option<String>,
    /// Print new lines as they come, until Main ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last N lines so far
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<usize>,
    /// Only lines since this time, as in `2026-11-20T19:47:32Z`, or from so long ago, as in `10min`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<SystemTime>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

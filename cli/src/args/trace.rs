//! Arguments of `weir trace`.

use clap::Args as ClapArgs;
use weir_host::traces::TraceId;

use super::Target;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Main records the calls, jobs and events that `main.trace-one-in` selects, and those that `weir call --trace`
asks for. AT is the time since the trace began. WAITED is the time until the receiver took the message, WORKED
that until the outcome. FUEL is what the receiver used meanwhile. docs/tracing.md says more.

Examples:
  weir call --trace settings@1 get '{\"key\": \"volume\"}'
  weir trace
  weir trace 0af7651916cd43dd8448eb211c80319c
  weir trace --slow --number 5")]
pub(crate) struct TraceArgs {
    /// The trace to show; by default, the last traces, a line for each
    #[arg(value_name = "TRACE", conflicts_with_all = ["slow", "number"])]
    pub(crate) trace: Option<TraceId>,
    /// List the slowest of the traces that Main still has, the slowest first
    #[arg(long)]
    pub(crate) slow: bool,
    /// How many traces to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) number: usize,
    /// Print JSON: the spans of the trace, or all that Main has
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

//! What the command line accepts, and the help for it.

mod components;
mod hooks;
mod main_choice;
mod traffic;

use std::{path::PathBuf, time::SystemTime};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub(crate) use self::{
    components::{CompileArgs, InspectArgs, KeygenArgs, SymboliseArgs},
    hooks::{HooksCommand, HooksRunArgs},
    main_choice::Target,
    traffic::{PutArgs, QueuesArgs, QueuesCommand, RequeueArgs, ShowArgs, TopicsArgs},
};

/// Run and control sandboxed WebAssembly extensions.
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
#[command(propagate_version = true, disable_help_subcommand = false)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Examples:
  weir check weir.toml                      see whether a configuration is right
  weir run weir.toml                        run it
  weir ps                                   how its extensions are
  weir call device.info@1 memory            call one of them

Exit codes:
  0  done                          5  refused: not permitted, too large, over a limit
  1  failed                        6  no answer in time; a hook took too long
  2  arguments that make no sense  7  the extension or hook ended with an error of its own
  3  Main cannot be reached        8  the extension cannot answer: stopped, starting,
  4  no such extension, contract      overloaded, or failed with the request in hand;
     or hooks                         or Main is busy or shutting down";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run Main with the extensions of a configuration, until it is stopped
    Run(RunArgs),
    /// Check a configuration and the components that it names, without running them
    Check(CheckArgs),
    /// List the extensions: state, processor time, memory, what waits for them
    Ps(PsArgs),
    /// Show all that is known of one extension, with its last failures
    #[command(after_help = "\
Examples:
  weir status storage
  weir status --json storage | jq '.failures[-1].trace'")]
    Status(IdArgs),
    /// Show what happened to an extension, and who asked for it
    #[command(after_help = "\
The last 100 events, oldest first: what was asked for and by whom, states with the version that serves,
failures.

Examples:
  weir history storage
  weir history --json storage | jq '.history[] | select(.event == \"asked\")'")]
    History(IdArgs),
    /// Show the limits of extensions: where each comes from, and what is used of it
    Limits(LimitsArgs),
    /// Show what extensions have logged
    Logs(LogsArgs),
    /// Call an operation of a contract and print the answer
    Call(CallArgs),
    /// Publish an event
    Publish(PublishArgs),
    /// Show events as they are published
    Tail(TailArgs),
    /// Show topics and who has subscribed: rates, lags, what was lost
    Topics(TopicsArgs),
    /// Show shared queues: what waits, rates, what was lost; show, put and requeue their jobs
    Queues(QueuesArgs),
    /// Run directories of hooks: commands that run to their end, one after the other
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Start extensions, each after what it requires; ends when they are ready
    #[command(after_help = "\
Several are started one after the other; where one does not start, the others do.

Examples:
  weir start uploader
  weir start --all")]
    Start(OrderArgs),
    /// Stop extensions; ends when they have ended
    #[command(after_help = "\
What requires one is not stopped, and gets `no-provider` until it runs again. Several are stopped one after
the other, with --all the last of the configuration first.

Examples:
  weir stop uploader
  weir stop uploader telemetry")]
    Stop(OrderArgs),
    /// Stop extensions that run, and start them with nothing held against them; ends when they are ready
    #[command(after_help = "\
Their components are read anew. This is what lifts a quarantine; failures no longer count. Several are
restarted one after the other; where one does not start, the others do.

Examples:
  weir restart uploader
  weir restart --all")]
    Restart(OrderArgs),
    /// Replace extensions while Main runs: one, or all that the configuration has changed
    Reload(ReloadArgs),
    /// Show what a reload would do: the keys, limits, grants and components that differ from what runs
    Plan(PlanArgs),
    /// Stop all extensions and Main; ends when they have ended
    #[command(after_help = "\
Examples:
  weir shutdown
  weir shutdown --config /etc/weir/weir.toml")]
    Shutdown(ShutdownArgs),
    /// Show what a component imports, exports and says it needs, as TOML to paste
    Inspect(InspectArgs),
    /// Compile a component and sign what comes of it, for devices that run only what was compiled elsewhere
    Compile(CompileArgs),
    /// Show in which lines of the source the functions of a trace were
    #[command(visible_alias = "symbolize")]
    Symbolise(SymboliseArgs),
    /// Make a key that `weir compile` signs with, and print what devices must trust
    Keygen(KeygenArgs),
    /// Print a script that completes `weir` in a shell
    #[command(after_help = "\
Examples:
  weir completions bash > /etc/bash_completion.d/weir
  weir completions fish > ~/.config/fish/completions/weir.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Lines on stderr say what happens; RUST_LOG chooses which, as in RUST_LOG=debug. SIGTERM and Ctrl-C let
extensions finish what they have in hand, within their stop-timeout; a second one ends all at once.

Examples:
  weir run weir.toml
  weir run --log-format json --socket /tmp/weir.sock weir.toml")]
pub(crate) struct RunArgs {
    /// The configuration
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Serve the control interface here and not at `main.control-socket`; also WEIR_SOCKET
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,
    /// How lines on stderr look
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Human,
    /// One JSON object a line
    Json,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Every component is compiled, and its imports are resolved. Exit code 1: something is wrong.

Examples:
  weir check weir.toml
  weir check --json weir.toml | jq .errors")]
pub(crate) struct CheckArgs {
    /// The configuration
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
CPU is the time that it ran, CPU% its share of the last second. MEMORY is used and allowed, INBOX is
messages and bytes that wait, SHED is messages that found no room. --watch lists them anew every two
seconds, until Main ends. Of a failure, `weir status ID` and --json also show the component's hash and
the functions that were running.

Examples:
  weir ps
  weir ps --watch --sort cpu
  weir ps --failures
  weir ps --json | jq -r '.extensions[] | select(.state != \"ready\") | .id'")]
pub(crate) struct PsArgs {
    /// List the last failures instead
    #[arg(long, conflicts_with = "sort")]
    pub(crate) failures: bool,
    /// The one with most of it first; else in the order of the configuration
    #[arg(long, value_name = "WHAT", conflicts_with = "json")]
    pub(crate) sort: Option<PsSort>,
    /// Go on as things change, until Main ends
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) watch: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PsSort {
    /// Share of the last second
    Cpu,
    /// Bytes of memory in use
    Memory,
    /// Messages that wait
    Inbox,
    /// How often it was restarted
    Restarts,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OrderArgs {
    /// The extensions
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) ids: Vec<String>,
    /// All that are configured
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct IdArgs {
    /// The extension
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
With an ID its component is loaded anew and takes the place of the one that runs, in the way that its
`reload` says. Without an ID Main reads its configuration again and applies what has changed: it stops
what is no longer there, starts what is new, replaces what has changed, and leaves all else alone. Where
the configuration is wrong, nothing is applied. If a new version does not come up, the one before goes
on, and the exit code is not 0.

Examples:
  weir reload uploader
  weir reload
  weir reload --json | jq .failed")]
pub(crate) struct ReloadArgs {
    /// Only this extension, as it is configured by now in Main
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Main reads its configuration and components again and touches nothing. Lines with - are what runs, lines
with + what a reload would have. Values of grants.env are not shown. Exit code 1: the configuration is
wrong, and a reload would be refused. That a component compiles is known when it is loaded; `weir check`
says so before.

Examples:
  weir plan
  weir plan uploader
  weir plan --json | jq '.changed[].keys'")]
pub(crate) struct PlanArgs {
    /// Only of this extension
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
USED is now and PEAK the most since Main started, over all instances; of ready-timeout and stop-timeout,
what the last start and stop took. FROM is where the limit is set. The time beside fuel is what plain
arithmetic takes on this machine; other code takes up to ten times as long.

Examples:
  weir limits
  weir limits telemetry
  weir limits --file weir.toml
  weir limits --json | jq -r '.extensions[] | [.id, .\"memory-sum\"] | @tsv'")]
pub(crate) struct LimitsArgs {
    /// Only of this extension
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Show what this configuration sets, and ask no Main
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["socket", "config"])]
    pub(crate) file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// A moment, or how long ago it was.
fn moment(text: &str) -> Result<SystemTime, String> {
    let ago = || SystemTime::now().checked_sub(humantime::parse_duration(text).ok()?);
    humantime::parse_rfc3339_weak(text).ok().or_else(ago).ok_or_else(|| {
        "it is neither a time, as in `2026-11-20T19:47:32Z`, nor how long ago, as in `10min`".to_owned()
    })
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Main keeps 256 KiB of lines. When there would be more, the extension that has most of it loses its
oldest line first.

Examples:
  weir logs -n 50
  weir logs -f storage
  weir logs --since 10min
  weir logs --json | jq 'select(.level == \"error\")'")]
pub(crate) struct LogsArgs {
    /// Only what this extension has logged
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Go on as lines come, until Main ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last N of the lines so far
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<usize>,
    /// Only lines since then: a time, as in `2026-11-20T19:47:32Z`, or how long ago, as in `10min`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<SystemTime>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
On a terminal the answer is laid out, if it is JSON; else its bytes are printed as they are.

Examples:
  weir call device.info@1 memory
  weir call local.storage@1 set '{\"key\": \"volume\", \"value\": 11}'
  weir call --timeout 30s firmware@1 install @update.bin
  echo hello | weir call echo@1 echo -")]
pub(crate) struct CallArgs {
    /// The contract, as in `device.info@1`
    #[arg(value_name = "CONTRACT")]
    pub(crate) contract: String,
    /// The operation, as in `memory`
    #[arg(value_name = "OPERATION")]
    pub(crate) operation: String,
    /// The arguments: JSON, `-` for all of stdin, or `@file`; without them, none
    #[arg(value_name = "JSON|-|@FILE", allow_hyphen_values = true)]
    pub(crate) payload: Option<String>,
    /// Send the arguments as they are, JSON or not
    #[arg(long)]
    pub(crate) raw: bool,
    /// Time for the answer, as in `2s`; without it, what the configuration says
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<humantime::Duration>,
    /// Who is to answer, if not the contract's owner: the id of an extension, or `main`
    #[arg(long, value_name = "ID")]
    pub(crate) provider: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weir publish device.rebooting
  weir publish settings.changed.volume 11
  weir publish --to telemetry settings.changed.volume @volume.json")]
pub(crate) struct PublishArgs {
    /// The topic, as in `settings.changed.volume`
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: String,
    /// What to publish: as it is, `-` for all of stdin, or `@file`; without it, nothing
    #[arg(value_name = "PAYLOAD|-|@FILE", allow_hyphen_values = true)]
    pub(crate) payload: Option<String>,
    /// Only to this extension
    #[arg(long, value_name = "ID")]
    pub(crate) to: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
In a pattern `*` stands for one segment of a topic and `>`, at the end, for the rest. Of topics that Main
retains, the last value comes first. The number before an event is its place in its topic.

Examples:
  weir tail '>'
  weir tail 'settings.changed.*'
  weir tail --json 'sensors.>' | jq .payload")]
pub(crate) struct TailArgs {
    /// Which topics
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: String,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShutdownArgs {
    #[command(flatten)]
    pub(crate) target: Target,
}

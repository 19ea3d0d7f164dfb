//! What the command line accepts, and the help for it.

#[cfg(feature = "compiler")]
mod author;
#[cfg(feature = "tools")]
mod components;
#[cfg(feature = "tools")]
mod contracts;
mod hooks;
mod logs;
mod main_choice;
mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
mod peers;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "tools")]
mod top;
mod trace;
mod traffic;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::{Shell, engine::ArgValueCompleter};

#[cfg(feature = "otlp")]
pub(crate) use self::otlp::OtlpArgs;
#[cfg(feature = "store")]
pub(crate) use self::store::{
    StoreArgs, StoreCommand, StoreCompactArgs, StoreExportArgs, StoreGetArgs, StoreImportArgs, StoreLsArgs,
    StorePutArgs, StoreRmArgs,
};
#[cfg(feature = "compiler")]
pub(crate) use self::{
    author::{BuildArgs, DevArgs, Kind, Language, NewArgs, TestArgs},
    components::{CompileArgs, KeygenArgs},
};
#[cfg(feature = "tools")]
pub(crate) use self::{
    components::{InspectArgs, SymboliseArgs},
    contracts::{CheckContractArgs, DescribeArgs, GenerateArgs},
    top::TopArgs,
};
pub(crate) use self::{
    hooks::{HooksCommand, HooksRunArgs},
    logs::LogsArgs,
    main_choice::{Asked, Target},
    metrics::MetricsArgs,
    peers::{EndArgs, PeersArgs, PeersCommand, TokenArgs},
    trace::TraceArgs,
    traffic::{PutArgs, QueuesArgs, QueuesCommand, RequeueArgs, ShowArgs, TailArgs, TopicsArgs},
};
use crate::complete;

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
  weir check weir.toml                      check a configuration
  weir run weir.toml                        run it
  weir ps                                   list its extensions
  weir call device.info@1 memory            call an extension

Exit codes:
  0  done                          5  refused: not permitted, too large, over a limit
  1  failed                        6  no answer in time; a hook took too long
  2  wrong arguments               7  the extension or hook ended with an error of its own
  3  Main cannot be reached        8  the extension cannot answer: stopped, starting,
  4  no such extension, contract,     overloaded, or failed with the request in hand;
     queue, store, session or hooks   or Main is busy or shutting down";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the project of an extension, a hook, an app or a sidecar
    #[cfg(feature = "compiler")]
    New(NewArgs),
    /// Build a project, and describe its contracts in its component
    #[cfg(feature = "compiler")]
    Build(BuildArgs),
    /// Build and run a project again after each change
    #[cfg(feature = "compiler")]
    Dev(DevArgs),
    /// Test a project in a Main of its own
    #[cfg(feature = "compiler")]
    Test(TestArgs),
    /// Run Main with the extensions of a configuration, until it is stopped
    Run(RunArgs),
    /// Check a configuration and the components that it names, without running them
    Check(CheckArgs),
    /// Print a JSON Schema of the configuration, with which editors complete and check it
    #[command(after_help = "\
It has every key with its type, range and meaning. docs/editors.md says how editors use it.

Examples:
  weir schema > weir.schema.json")]
    Schema,
    /// List the extensions: state, processor time, memory, waiting messages; and the peers
    Ps(PsArgs),
    /// Show live what extensions and peers use, on the whole terminal; stop, restart or reload one
    #[cfg(feature = "tools")]
    Top(TopArgs),
    /// Show the details of one extension and its last failures
    #[command(after_help = "\
Examples:
  weir status storage
  weir status --json storage | jq '.failures[-1].trace'")]
    Status(IdArgs),
    /// Show the latest events of an extension and their causes
    #[command(after_help = "\
The last 100 events, oldest first: commands and their senders, states with the version that serves,
failures.

Examples:
  weir history storage
  weir history --json storage | jq '.history[] | select(.event == \"asked\")'")]
    History(IdArgs),
    /// Show the limits of extensions: value, usage, and where each is set
    Limits(LimitsArgs),
    /// Show the log lines of extensions
    Logs(LogsArgs),
    /// Show the operations, topics and queues of contracts: of a component, or of what runs
    #[cfg(feature = "tools")]
    Describe(DescribeArgs),
    /// Write a typed client of contracts: Rust, TypeScript or Python
    #[cfg(feature = "tools")]
    Generate(GenerateArgs),
    /// Say whether the next version of a contract breaks its callers
    #[cfg(feature = "tools")]
    CheckContract(CheckContractArgs),
    /// Call an operation of a contract and print the answer
    Call(CallArgs),
    /// Publish an event
    Publish(PublishArgs),
    /// Show events as they are published
    Tail(TailArgs),
    /// Show topics and their subscribers: rates, lags, losses
    Topics(TopicsArgs),
    /// Show shared queues: waiting jobs, rates, losses; show, put and requeue jobs
    Queues(QueuesArgs),
    /// Show the metrics of Main, or serve them for Prometheus
    Metrics(MetricsArgs),
    /// Show where the time of a request went, from extension to extension
    Trace(TraceArgs),
    /// Export the spans of Main to a collector of OpenTelemetry, until a signal
    #[cfg(feature = "otlp")]
    Otlp(OtlpArgs),
    /// Show programs outside Main and their sessions; end a session, make a token
    Peers(PeersArgs),
    /// List, read and change key-value stores; export, import and compact them
    #[cfg(feature = "store")]
    Store(StoreArgs),
    /// Run directories of hooks: commands that run one after another, each to its end
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Start extensions, each after its dependencies, and wait until they are ready
    #[command(after_help = "\
Starts several extensions one after another; if one does not start, the others still do.

Examples:
  weir start uploader
  weir start --all")]
    Start(OrderArgs),
    /// Stop extensions and wait until they have ended
    #[command(after_help = "\
Extensions that require a stopped one go on, and get `no-provider` until it runs again. Stops several
extensions one after another; with --all, the last of the configuration first.

Examples:
  weir stop uploader
  weir stop uploader telemetry")]
    Stop(OrderArgs),
    /// Stop and start extensions, forget their failures, and wait until they are ready
    #[command(after_help = "\
Reads the components again, forgets earlier failures and lifts a quarantine. Restarts several extensions
one after another; if one does not start, the others still do.

Examples:
  weir restart uploader
  weir restart --all")]
    Restart(OrderArgs),
    /// Replace extensions while Main runs: one, or all that have changed in the configuration
    Reload(ReloadArgs),
    /// Show what a reload would do: the keys, limits, grants and components that would change
    Plan(PlanArgs),
    /// Stop all extensions and Main, and wait until they have ended
    #[command(after_help = "\
Examples:
  weir shutdown
  weir shutdown --config /etc/weir/weir.toml")]
    Shutdown(ShutdownArgs),
    /// Show the imports, exports and needs of a component, as TOML to paste; or the target of an artifact
    #[cfg(feature = "tools")]
    Inspect(InspectArgs),
    /// Compile a component to a signed artifact, for devices that run only artifacts
    #[cfg(feature = "compiler")]
    Compile(CompileArgs),
    /// Show the source lines of the functions in a trace
    #[cfg(feature = "tools")]
    #[command(visible_alias = "symbolize")]
    Symbolise(SymboliseArgs),
    /// Make a signing key for `weir compile`, and print the public key that devices must trust
    #[cfg(feature = "compiler")]
    Keygen(KeygenArgs),
    /// Print a script that completes `weir` in a shell
    #[command(after_help = "\
The shell completes commands and files, and with a running Main its contracts, operations, arguments,
extensions, queues and topics. A script fits the version of `weir` that printed it.

Examples:
  weir completions fish > ~/.config/fish/completions/weir.fish
  source <(weir completions bash)           in ~/.bashrc
  source <(weir completions zsh)            in ~/.zshrc")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The log goes to stderr; RUST_LOG chooses its lines, as in RUST_LOG=debug. SIGTERM and Ctrl-C let extensions
finish what they have in hand, within their stop-timeout. A second signal ends the process at once.

Examples:
  weir run weir.toml
  weir run --log-format json --socket /tmp/weir.sock weir.toml")]
pub(crate) struct RunArgs {
    /// The configuration
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Serve the control interface here instead of at `main.control-socket`; also WEIR_SOCKET
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,
    /// Format of the log on stderr
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) log_format: LogFormat,
    /// End as by SIGTERM when the process that started this one ends
    #[arg(long, hide = true)]
    pub(crate) end_with_parent: bool,
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
Compiles every component and resolves its imports. Exit code 1: something is wrong.

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
CPU is the processor time of the extension, CPU% its share of the last second. MEMORY is used and allowed
memory, INBOX is waiting messages and bytes, SHED is messages that found no room. Below are the configured
programs outside Main; `weir peers` shows their sessions. --watch lists everything again every two seconds,
until Main ends. For a failure, `weir status ID` and --json also show the component's hash and the functions
that were running.

Examples:
  weir ps
  weir ps --watch --sort cpu
  weir ps --failures
  weir ps --json | jq -r '.extensions[] | select(.state != \"ready\") | .id'")]
pub(crate) struct PsArgs {
    /// List the last failures instead
    #[arg(long, conflicts_with = "sort")]
    pub(crate) failures: bool,
    /// Sort by this, largest first; by default, in the order of the configuration
    #[arg(long, value_name = "WHAT", conflicts_with = "json")]
    pub(crate) sort: Option<PsSort>,
    /// List again every two seconds, until Main ends
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PsSort {
    /// Share of processor time in the last second
    Cpu,
    /// Bytes of memory in use
    Memory,
    /// Waiting messages
    Inbox,
    /// Number of restarts
    Restarts,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OrderArgs {
    /// The extensions
    #[arg(value_name = "ID", required_unless_present = "all")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    pub(crate) ids: Vec<String>,
    /// All configured extensions
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
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
With an ID, Main loads the extension's component again and replaces the running version, as its `reload`
says. Without an ID, Main reads its configuration again and applies the changes: it stops removed
extensions, starts new ones, replaces changed ones and leaves the others alone. If the configuration is
wrong, nothing is applied. If a new version does not come up, the previous version goes on, and the exit
code is not 0.

Examples:
  weir reload uploader
  weir reload
  weir reload --json | jq .failed")]
pub(crate) struct ReloadArgs {
    /// Only this extension, with the configuration that Main has now
    #[arg(value_name = "ID")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Main reads its configuration and components again and changes nothing. Lines with - show what runs, lines
with + what a reload would run. Values of grants.env are not shown. Exit code 1: the configuration is
wrong, and a reload would be refused. The components are not compiled; `weir check` compiles them.

Examples:
  weir plan
  weir plan uploader
  weir plan --json | jq '.changed[].keys'")]
pub(crate) struct PlanArgs {
    /// Only this extension
    #[arg(value_name = "ID")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
USED is now, and PEAK the highest since Main started, over all instances. For ready-timeout and stop-timeout,
USED is the time of the last start and stop. FROM is where the limit is set. The time beside fuel is for plain
arithmetic on this machine; other code takes up to ten times as long.

Examples:
  weir limits
  weir limits telemetry
  weir limits --file weir.toml
  weir limits --json | jq -r '.extensions[] | [.id, .\"memory-sum\"] | @tsv'")]
pub(crate) struct LimitsArgs {
    /// Only this extension
    #[arg(value_name = "ID")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    pub(crate) id: Option<String>,
    /// Show the limits that this configuration sets; needs no Main
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["socket", "config"])]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
On a terminal, an answer in JSON is indented; otherwise its bytes are printed as they are. If the provider
describes the contract, as `weir describe` shows, the arguments are checked before they are sent.

Examples:
  weir call device.info@1 memory
  weir call local.storage@1 set '{\"key\": \"volume\", \"value\": 11}'
  weir call --timeout 30s firmware@1 install @update.bin
  echo hello | weir call echo@1 echo -")]
pub(crate) struct CallArgs {
    /// The contract, as in `device.info@1`
    #[arg(value_name = "CONTRACT")]
    #[arg(add = ArgValueCompleter::new(complete::contract))]
    pub(crate) contract: String,
    /// The operation, as in `memory`
    #[arg(value_name = "OPERATION")]
    #[arg(add = ArgValueCompleter::new(complete::operation))]
    pub(crate) operation: String,
    /// The arguments: JSON, `-` for all of stdin, or `@file`; none by default
    #[arg(value_name = "JSON|-|@FILE", allow_hyphen_values = true)]
    #[arg(add = ArgValueCompleter::new(complete::argument))]
    pub(crate) payload: Option<String>,
    /// Send the arguments as they are, JSON or not
    #[arg(long)]
    pub(crate) raw: bool,
    /// Send the arguments also if they do not fit what the provider describes
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Record the call and what it causes, and print that to stderr, as `weir trace` does
    #[arg(long)]
    pub(crate) trace: bool,
    /// Time limit for the answer, as in `2s`; by default, that of the configuration
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<humantime::Duration>,
    /// The provider to call: an extension, a peer, or `main`; by default, the contract's owner
    #[arg(long, value_name = "ID")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
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
    #[arg(add = ArgValueCompleter::new(complete::topic))]
    pub(crate) topic: String,
    /// The payload: text, `-` for all of stdin, or `@file`; empty by default
    #[arg(value_name = "PAYLOAD|-|@FILE", allow_hyphen_values = true)]
    pub(crate) payload: Option<String>,
    /// Only to this extension or peer
    #[arg(long, value_name = "ID")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShutdownArgs {
    #[command(flatten)]
    pub(crate) target: Target,
}

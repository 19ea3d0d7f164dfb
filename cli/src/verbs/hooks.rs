//! `weir hooks`: runs a directory of hooks in this process.
//!
//! A signal ends the process: the hooks are sandboxed and leave nothing to clean up.

use std::{
    error::Error,
    path::{self, Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use bytesize::ByteSize;
use clap::{Subcommand, ValueHint};
use weir_host::{
    Config, Main,
    blocking::{BlockingError, wait},
    config::{DirGrant, DirMode, Feature},
    hooks::{HookCall, HookDirConfig, HookError, HookOutcome, HookReport, HookRun, HooksConfig},
    names::HookDirName,
};

use crate::{
    exit::{HookFailed, Usage},
    features::{self, compilation},
    logging::{self, LogFormat},
    output::{self, counted, printable},
    payload::{self, payload},
    tables::{limit_hit, time},
};

/// What is logged: what a hook was refused, and what is wrong with stores. How each hook ended is in the report.
const LOGGED: &str = "error,weir::refused=warn,weir_store=warn";

/// The shortest loading time that is shown. It means that the user has waited for the compiler.
const LONG: Duration = Duration::from_millis(100);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the hooks of a directory in this process; needs no running Main
    Run(Box<Args>),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Hooks are components that run to their end, in the order of their names. A hook runs only if the one before
ended well or with a warning. Hooks see the variables and directories named here, and nothing else of this
machine. Exit code 7: a hook ended with an error of its own; 6: it took too long; 5: it was over a limit.

Examples:
  weir hooks run hooks.d --param NODE=n1 --dir /tmp/x:/data:rw
  weir hooks run hooks.d --param NODE=n1 --class min --timeout 2s
  weir hooks run --config device.toml nodes --param NODE=n1
  weir hooks run --json hooks.d | jq -r '.hooks[] | [.hook, .outcome] | @tsv'")]
pub(crate) struct Args {
    /// The directory; with --config, the NAME of its `[hooks.NAME]`
    #[arg(value_name = "DIR|NAME", value_hint = ValueHint::DirPath)]
    which: PathBuf,
    /// Run the hooks as this configuration says
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["dirs", "class", "timeout", "total_timeout", "output", "suffixes", "features"])]
    config: Option<PathBuf>,
    /// A parameter: an environment variable for hooks, which overrides --env. Can be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = variable)]
    params: Vec<(String, String)>,
    /// An environment variable for hooks. Can be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// An argument for every hook. Can be repeated
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    args: Vec<String>,
    /// The standard input of every hook: a file, or `-` for all of stdin; empty by default
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    stdin: Option<String>,
    /// A directory of this machine, and its path for hooks; read-only unless `rw`. Can be repeated
    #[arg(long = "dir", value_name = "HOST:GUEST[:ro|rw]", value_parser = dir_grant)]
    dirs: Vec<DirGrant>,
    /// The limits of each hook
    #[arg(long, value_name = "CLASS", default_value = "medium", value_parser = ["min", "medium", "max"])]
    class: String,
    /// A part of WebAssembly that hooks may use: `exceptions`, `gc`, `tail-calls`, `relaxed-simd` or `memory64`. Can be
    /// repeated
    #[arg(long = "feature", value_name = "FEATURE")]
    features: Vec<Feature>,
    /// Time limit of one hook, as in `2s`; 30s by default
    #[arg(long, value_name = "TIME")]
    timeout: Option<humantime::Duration>,
    /// Time limit of all hooks together; 5min by default
    #[arg(long, value_name = "TIME")]
    total_timeout: Option<humantime::Duration>,
    /// Bytes that all hooks together may write to stdout, and to stderr, as in `1MiB`; 64KiB by default
    #[arg(long, value_name = "SIZE")]
    output: Option<ByteSize>,
    /// The end of a hook's file name; `.wasm` or `.cwasm` by default. Can be repeated
    #[arg(long = "suffix", value_name = "SUFFIX")]
    suffixes: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name is empty".to_owned()),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("there is no `=` after the name".to_owned()),
    }
}

fn dir_grant(text: &str) -> Result<DirGrant, String> {
    let (dirs, mode) = match text.rsplit_once(':') {
        Some((dirs, "ro")) => (dirs, DirMode::Ro),
        Some((dirs, "rw")) => (dirs, DirMode::Rw),
        _ => (text, DirMode::default()),
    };
    match dirs.rsplit_once(':') {
        Some((host, guest)) if !host.is_empty() => {
            let guest = guest.parse().map_err(|error| format!("{error}"))?;
            Ok(DirGrant { mode, ..DirGrant::read_only(host, guest) })
        }
        _ => Err("it is not of the form `HOST:GUEST`, as in `/tmp/x:/data`".to_owned()),
    }
}

pub(super) fn run(Command::Run(args): Command) -> anyhow::Result<()> {
    let (name, config) = match &args.config {
        Some(file) => configured(file, &args.which)?,
        None => asked_for(&args)?,
    };
    let call = call(&args)?;
    let suffixes = config
        .section::<HooksConfig>()
        .and_then(|hooks| hooks.0.get(&name))
        .map(|dir| dir.suffixes.clone())
        .unwrap_or_default();
    let what = format!("running the hooks of `{}`", printable(&args.which.display().to_string()));
    logging::init(LogFormat::Human, Some(LOGGED))?;
    let report = logging::during(what, || run_once(config, &name, call));
    output::warn_of_confinement();
    let report = report?;
    if args.json {
        output::json(&report)?;
    } else if report.runs.is_empty() {
        output::line(&no_hooks(&args.which, &suffixes))?;
    } else {
        output::write(shown(&report)?.as_bytes())?;
    }
    if report.is_success() { Ok(()) } else { Err(HookFailed(report.outcome().clone()).into()) }
}

fn run_once(config: Config, name: &HookDirName, call: HookCall) -> anyhow::Result<HookReport> {
    let main = wait(Main::builder(config).compilation(compilation()).start()).map_err(of_call)?;
    let report = main.hooks().get(name.as_str())?.run_blocking(call).map_err(of_call);
    main.shutdown_blocking()?;
    report
}

fn configured(file: &Path, name: &Path) -> anyhow::Result<(HookDirName, Config)> {
    let config = features::load(file)?;
    let hooks = config.section::<HooksConfig>().cloned().unwrap_or_default().0;
    let found = hooks.into_iter().find(|(known, _)| Path::new(known.as_str()) == name);
    let (name, dir) = found.ok_or_else(|| HookError::Unknown(name.display().to_string()))?;
    Ok((name.clone(), alone(&config, name, dir)))
}

/// Makes the configuration of a directory that no file configures. Its class sets limits as in a file.
fn asked_for(args: &Args) -> anyhow::Result<(HookDirName, Config)> {
    let text = format!("hooks.run = {{ dir = \".\", class = \"{}\" }}", args.class);
    let config = weir_host::parse(&text, "weir hooks run", Path::new("."))?;
    let mut hooks = config.section::<HooksConfig>().cloned().unwrap_or_default().0;
    let (name, mut dir) = hooks.pop_first().context("nothing is configured")?;
    dir.dir = absolute(&args.which)?;
    dir.grants.dirs.clone_from(&args.dirs);
    for granted in &mut dir.grants.dirs {
        granted.host = absolute(&granted.host)?;
    }
    dir.limits.features = args.features.iter().copied().collect();
    if let Some(timeout) = args.timeout {
        dir.timeout = timeout.into();
    }
    if let Some(timeout) = args.total_timeout {
        dir.total_timeout = timeout.into();
    }
    if !args.suffixes.is_empty() {
        dir.suffixes.clone_from(&args.suffixes);
    }
    if let Some(output) = args.output {
        dir.output = output.0;
    }
    let config = alone(&config, name.clone(), dir);
    config.check().map_err(|errors| Usage(errors.to_string()))?;
    Ok((name, config))
}

/// Makes a path absolute, as paths in a configuration file are. The check for directories that overlap compares the
/// text of their paths.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    path::absolute(path).with_context(|| format!("cannot find the directory `{}`", path.display()))
}

/// Makes a configuration with this directory of hooks and what its hooks use: their stores, and the settings of HTTP. Its
/// Main has no extensions, serves no contract, and keeps no versions.
fn alone(config: &Config, name: HookDirName, dir: HookDirConfig) -> Config {
    let mut main = config.main.clone();
    main.serves.clear();
    main.state_dir = None;
    let mut alone = Config::new(main, Vec::new());
    #[cfg(feature = "http")]
    if let Some(http) = config.section::<weir_host::http::HttpConfig>() {
        alone.set_section(http.clone());
    }
    #[cfg(feature = "store")]
    if let Some(stores) = config.section::<weir_host::store::StoresConfig>() {
        let mut stores = stores.clone();
        stores.0.retain(|name, _| dir.grants.stores.iter().any(|grant| grant.name == *name));
        alone.set_section(stores);
    }
    alone.set_section(HooksConfig::from_iter([(name, dir)]));
    alone
}

fn call(args: &Args) -> anyhow::Result<HookCall> {
    let mut call = HookCall::new();
    call.params.extend(args.params.iter().cloned());
    call.env.extend(args.env.iter().cloned());
    call.args.clone_from(&args.args);
    call.stdin = match args.stdin.as_deref() {
        Some("-") => payload(Some("-"))?,
        Some(path) => payload::file(path)?,
        None => payload(None)?,
    };
    Ok(call)
}

/// Removes the layer that says the call was blocking.
fn of_call<E: Error + Send + Sync + 'static>(error: BlockingError<E>) -> anyhow::Error {
    match error {
        BlockingError::Call(error) => error.into(),
        BlockingError::InAsync => error.into(),
    }
}

/// Shows each hook with its output, and a summary. The output is indented, so that it cannot look like the report.
fn shown(report: &HookReport) -> anyhow::Result<String> {
    let names: Vec<_> = report.runs.iter().map(|run| printable(&run.hook)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, run) in names.iter().zip(&report.runs) {
        let took = took(run);
        text.push_str(&format!("{name:<width$}  {}, {took}\n", run.outcome));
        for (fact, value) in facts(&run.outcome)? {
            text.push_str(&format!("  {fact:<8}{}\n", printable(&value)));
        }
        text.push_str(&written(run));
    }
    text.push_str(&summary(report));
    Ok(text)
}

fn no_hooks(which: &Path, suffixes: &[String]) -> String {
    let suffixes: Vec<_> = suffixes.iter().map(|suffix| format!("`{}`", printable(suffix))).collect();
    let which = printable(&which.display().to_string());
    format!("`{which}` has no hooks: no file name ends with {}", suffixes.join(" or "))
}

fn facts(outcome: &HookOutcome) -> anyhow::Result<Vec<(&'static str, String)>> {
    Ok(match outcome {
        HookOutcome::TimedOut { limit, allowed } => {
            vec![("limit", format!("{limit}: {}", seconds(*allowed)))]
        }
        HookOutcome::LimitExceeded(hit) => vec![("limit", limit_hit(hit))],
        HookOutcome::SystemError { reason, trace } => {
            let names = ["trace"].into_iter().chain(std::iter::repeat(""));
            let trace = names.zip(trace.iter().cloned());
            [("cause", reason.clone())].into_iter().chain(trace).collect()
        }
        _ => Vec::new(),
    })
}

/// The lines that a hook wrote. Lines of its standard error have a mark.
fn written(run: &HookRun) -> String {
    let streams = [("    ", &run.stdout), ("  ! ", &run.stderr)];
    let lines = streams.into_iter().flat_map(|(mark, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().map(|line| format!("{mark}{}\n", printable(line))).collect::<Vec<_>>()
    });
    lines.collect()
}

fn summary(report: &HookReport) -> String {
    let count = |is: fn(&HookOutcome) -> bool| report.runs.iter().filter(|run| is(&run.outcome)).count();
    let mut text = counted(report.runs.len() as u64, "hook");
    let warnings = count(|outcome| matches!(outcome, HookOutcome::Warning { .. }));
    if warnings > 0 {
        text.push_str(&format!(", {}", counted(warnings as u64, "warning")));
    }
    text.push_str(&format!(", in {}", seconds(report.duration)));
    if let Some(HookRun { hook, outcome, .. }) = report.runs.last()
        && !outcome.goes_on()
    {
        text.push_str(&format!("; stopped at `{}`: {outcome}", printable(hook)));
    }
    text.push('\n');
    text
}

fn took(run: &HookRun) -> String {
    let took = seconds(run.duration);
    match run.loading {
        short if short < LONG => took,
        long => format!("{took}, of which {} to load it", seconds(long)),
    }
}

fn seconds(duration: Duration) -> String {
    time(duration.as_secs_f64())
}

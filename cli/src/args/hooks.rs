//! Arguments of `weir hooks`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueHint};
use weir_host::config::{DirGrant, DirMode};

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Run the hooks of a directory in this process; needs no running Main
    Run(Box<HooksRunArgs>),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Hooks are components that run to their end, in the order of their names. A hook runs only if the one before
ended well or with a warning. Hooks see the variables and directories named here, and nothing else of this
machine. Exit code 7: a hook ended with an error of its own; 6: it took too long; 5: it was over a limit.

Examples:
  weir hooks run hooks.d --param NODE=n1 --dir /tmp/x:/data:rw
  weir hooks run hooks.d --param NODE=n1 --class min --timeout 2s
  weir hooks run --config device.toml nodes --param NODE=n1
  weir hooks run --json hooks.d | jq -r '.hooks[] | [.hook, .outcome] | @tsv'")]
pub(crate) struct HooksRunArgs {
    /// The directory; with --config, the NAME of its `[hooks.NAME]`
    #[arg(value_name = "DIR|NAME", value_hint = ValueHint::DirPath)]
    pub(crate) which: PathBuf,
    /// Run the hooks as this configuration says
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["dirs", "class", "timeout", "total_timeout", "suffixes"])]
    pub(crate) config: Option<PathBuf>,
    /// A parameter: an environment variable for hooks, which overrides --env. Can be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) params: Vec<(String, String)>,
    /// An environment variable for hooks. Can be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// An argument for every hook. Can be repeated
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
    /// The standard input of every hook: a file, or `-` for all of stdin; empty by default
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) stdin: Option<String>,
    /// A directory of this machine, and its path for hooks; read-only unless `rw`. Can be repeated
    #[arg(long = "dir", value_name = "HOST:GUEST[:ro|rw]", value_parser = dir_grant)]
    pub(crate) dirs: Vec<DirGrant>,
    /// The limits of each hook
    #[arg(long, value_name = "CLASS", default_value = "medium", value_parser = ["min", "medium", "max"])]
    pub(crate) class: String,
    /// Time limit of one hook, as in `2s`; 30s by default
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<humantime::Duration>,
    /// Time limit of all hooks together; 5min by default
    #[arg(long, value_name = "TIME")]
    pub(crate) total_timeout: Option<humantime::Duration>,
    /// The end of a hook's file name; `.wasm` or `.cwasm` by default. Can be repeated
    #[arg(long = "suffix", value_name = "SUFFIX")]
    pub(crate) suffixes: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
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

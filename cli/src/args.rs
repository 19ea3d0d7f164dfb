//! What the command line has before and beside the verbs: which Main, and how its answer is printed.

use std::{env, path::PathBuf, sync::OnceLock};

use bytes::Bytes;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, ValueHint};
use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_host::MainConfig;

use crate::{
    client::{Client, Patience, Route, read, understood},
    exit::Usage,
    features, output,
    verbs::Verb,
};

/// Run and control sandboxed WebAssembly extensions.
#[derive(Debug, Parser)]
#[command(name = "weir", version, long_version = features::version(), after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
#[command(propagate_version = true, disable_help_subcommand = false)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    verb: Verb,
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

/// Which Main, given before or after the verb.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Target {
    /// The control socket of Main; also WEIR_SOCKET
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    pub(crate) socket: Option<PathBuf>,
    /// Take the control socket from this configuration
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// Which Main, and how its answer is printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// The Main that `--socket` or `--config` before the verb names. It counts if no such option follows the verb.
static BEFORE: OnceLock<Target> = OnceLock::new();

const NEEDS_NO_MAIN: &str =
    "`--socket` and `--config` before the command fit only commands that talk to a running Main";

const GIVEN_TWICE: &str = "`--socket` or `--config` is given before and after the command: give it once";

/// The environment variable with the path of the control socket.
const VARIABLE: &str = "WEIR_SOCKET";

impl Args {
    /// Returns the verb of this process's command line, and keeps the Main chosen before it, which must suit the verb.
    /// Ends the process if clap finds the arguments wrong, or help or the version is asked for.
    pub(crate) fn verb() -> anyhow::Result<Verb> {
        let matches = Self::command().get_matches();
        let Self { target, verb } = Self::from_arg_matches(&matches)
            .unwrap_or_else(|error| error.format(&mut Self::command()).exit());
        if target.socket.is_some() || target.config.is_some() {
            target.fits(&matches).map_err(|why| Usage(why.to_owned()))?;
            BEFORE.get_or_init(|| target);
        }
        Ok(verb)
    }
}

impl Target {
    /// Checks that this choice, made before the verb, suits it: the verb needs a Main, and no choice follows it.
    fn fits(&self, mut matches: &ArgMatches) -> Result<(), &'static str> {
        while let Some((_, below)) = matches.subcommand() {
            matches = below;
        }
        // `None` means that the verb has no such option.
        let [socket, config] = ["socket", "config"].map(|option| matches.try_contains_id(option).ok());
        match (socket, config) {
            (Some(false), Some(false)) => Ok(()),
            (Some(_), Some(_)) => Err(GIVEN_TWICE),
            // `weir run` has no `--config`: it makes the socket that is chosen before it.
            (Some(false), None) if self.socket.is_some() => Ok(()),
            _ => Err(NEEDS_NO_MAIN),
        }
    }

    /// Returns the socket: from the arguments after or before the verb, else the environment, else the default. Of a
    /// configuration only this key is read, so it serves even if other parts of the file are wrong.
    pub(crate) fn socket(&self) -> anyhow::Result<PathBuf> {
        match self {
            Self { socket: Some(socket), .. } => Ok(socket.clone()),
            Self { config: Some(file), .. } => Ok(MainConfig::control_socket_of(file)?),
            Self { socket: None, config: None } => match BEFORE.get() {
                Some(before) => before.socket(),
                None => Ok(of_environment().unwrap_or_else(|| MainConfig::default().control_socket)),
            },
        }
    }
}

/// Returns the socket at which `weir run` serves, if its arguments or the environment name one. Otherwise its
/// configuration does.
pub(crate) fn socket_beside_file(argument: Option<PathBuf>) -> Option<PathBuf> {
    argument.or_else(|| BEFORE.get()?.socket.clone()).or_else(of_environment)
}

/// Fails if a Main was chosen before the verb. A verb calls this when it needs no Main with its present arguments.
pub(crate) fn refuse_choice_before() -> Result<(), Usage> {
    if BEFORE.get().is_some() { Err(Usage(NEEDS_NO_MAIN.to_owned())) } else { Ok(()) }
}

fn of_environment() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Asked {
    /// Asks Main, and prints its answer: as JSON, or as the text made of it.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        route: &Route,
        text: impl FnOnce(T) -> String,
    ) -> anyhow::Result<()> {
        self.send(Method::GET, route, Bytes::new(), Patience::Query, text).await
    }

    /// Sends a request to Main, and prints the answer: as JSON, or as the text made of it.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        route: &Route,
        body: Bytes,
        patience: Patience,
        text: impl FnOnce(T) -> String,
    ) -> anyhow::Result<()> {
        let answer = Client::connect(&self.target).await?.ask(method, route, body, patience).await?;
        self.print(read(&answer)?, text)
    }

    /// Prints an answer: as JSON, or as the text made of it.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        answer: Value,
        text: impl FnOnce(T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            return output::json(&answer);
        }
        output::write(text(understood(answer)?).as_bytes())
    }
}

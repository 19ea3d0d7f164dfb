//! The command line.

use std::{path::PathBuf, time::Duration};

use anyhow::Result;
use bytesize::ByteSize;
use clap::{CommandFactory, Parser, Subcommand, ValueHint, builder::FalseyValueParser, error::ErrorKind};

use crate::{
    commands,
    credentials::{self, NoCredentials},
    layout::Layout,
    reference::{Reference, Repository},
    registry::Registry,
    transport::Transport,
    trust::Trust,
    url::Origin,
};

const EXIT_CODES: &str = "\
Examples:
  weir-registry pull registry.example.com/plugins/echo:1.0.0 echo
  weir-registry push echo registry.example.com/plugins/echo:1.0.0
  weir-registry tags registry.example.com/plugins/echo

Exit codes:
  0  done                             4  the registry has no such thing
  1  failed, or refused what it got   5  the registry does not allow it
  2  wrong arguments                  6  no end in time
  3  the registry cannot be reached";

/// Move packages of extensions between registries of containers and directories.
#[derive(Debug, Parser)]
#[command(name = "weir-registry", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    way: Way,
}

/// How to reach the registry.
#[derive(Debug, clap::Args)]
struct Way {
    /// Credentials, in place of those in docker's and podman's files
    #[arg(long, global = true, value_name = "FILE", env = "REGISTRY_AUTH_FILE", value_hint = ValueHint::FilePath)]
    auth_file: Option<PathBuf>,
    /// Trust the certificates in this file: of the registry these alone, of hosts that it names the system's, too
    #[arg(long, global = true, value_name = "FILE", env = "WEIR_REGISTRY_CA_FILE", value_hint = ValueHint::FilePath)]
    ca_file: Option<PathBuf>,
    /// Speak HTTP without TLS, and send credentials so. Of registries on this machine, those without certificates of
    /// their own are spoken to without TLS anyway, and get no credentials
    #[arg(long, global = true, env = "WEIR_REGISTRY_PLAIN_HTTP")]
    #[arg(value_parser = FalseyValueParser::new())]
    plain_http: bool,
    /// How long all of it may take
    #[arg(long, global = true, value_name = "TIME", env = "WEIR_REGISTRY_TIMEOUT", default_value = "10m")]
    timeout: humantime::Duration,
    /// How long the registry may neither send nor take anything
    #[arg(
        long,
        global = true,
        value_name = "TIME",
        env = "WEIR_REGISTRY_IDLE_TIMEOUT",
        default_value = "30s"
    )]
    idle_timeout: humantime::Duration,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch a package into a new directory, an OCI image layout
    ///
    /// Every blob is held against its digest and size. If something is wrong, nothing is written.
    Pull {
        /// What to fetch: `HOST[:PORT]/NAME[:TAG][@DIGEST]`. A digest pins it
        reference: Reference,
        /// The directory, which is not there yet
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
        #[command(flatten)]
        room: Room,
    },
    /// Bring a package to a registry
    Push {
        /// The package: an OCI image layout, as a directory or as a tar
        #[arg(value_hint = ValueHint::AnyPath)]
        package: PathBuf,
        /// Where to: `HOST[:PORT]/NAME[:TAG]`
        reference: Reference,
        #[command(flatten)]
        room: Room,
    },
    /// List the tags of a repository, one a line
    Tags {
        /// The repository: `HOST[:PORT]/NAME`
        repository: Repository,
    },
}

#[derive(Debug, clap::Args)]
struct Room {
    /// Most bytes of all blobs together
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    max_size: ByteSize,
}

impl Args {
    /// Reads arguments and variables, or ends the program with an error.
    pub(crate) fn read() -> Self {
        let args = Self::parse();
        // A variable that says no is no contradiction, which Clap would see in it.
        if args.way.plain_http && args.way.ca_file.is_some() {
            let why = "without TLS there are no certificates: give one of `--plain-http` (`WEIR_REGISTRY_PLAIN_HTTP`) and \
                       `--ca-file` (`WEIR_REGISTRY_CA_FILE`)";
            Self::command().error(ErrorKind::ArgumentConflict, why).exit();
        }
        args
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.way.timeout.into()
    }

    /// Runs the command, and returns what it prints.
    pub(crate) async fn run(self) -> Result<String> {
        let Self { command, way } = self;
        match command {
            Command::Pull { reference, directory, room } => {
                let mut registry = way.registry(&reference.repository, "pull").await?;
                let pulled = commands::pull(&mut registry, &reference, &directory, room.max_size.0).await?;
                Ok(format!("{pulled}\n"))
            }
            Command::Push { package, reference, room } => {
                let layout = Layout::open(&package, room.max_size.0)?;
                let mut registry = way.registry(&reference.repository, "pull,push").await?;
                Ok(format!("{}\n", commands::push(&mut registry, layout, &reference).await?))
            }
            Command::Tags { repository } => {
                let mut registry = way.registry(&repository, "pull").await?;
                Ok(registry.tags().await?.into_iter().map(|tag| tag + "\n").collect())
            }
        }
    }
}

impl Way {
    async fn registry(self, repository: &Repository, actions: &'static str) -> Result<Registry> {
        let Self { auth_file, ca_file, plain_http, idle_timeout, timeout: _ } = self;
        let trust = Trust::find(&repository.host, ca_file)?;
        let origin = Origin::of(repository.authority(), true)?;
        let is_plain = plain_http || (origin.is_loopback() && !trust.is_for_registry());
        let origin = if is_plain { Origin::of(repository.authority(), false)? } else { origin };
        let credentials = if is_plain && !plain_http {
            Err(NoCredentials::InClear)
        } else {
            credentials::find(repository, auth_file.as_deref()).await?.ok_or(NoCredentials::NotKept)
        };
        Ok(Registry {
            transport: Transport::new(trust.tls(origin.clone())?, idle_timeout.into()),
            origin,
            repository: repository.clone(),
            credentials,
            actions,
            authorization: None,
        })
    }
}

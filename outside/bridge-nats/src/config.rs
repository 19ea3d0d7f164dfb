//! The bridge's file: which Main, which NATS, and what crosses.
//!
//! Owns keys, their ranges and the checks between them. Knows nothing of sockets.

mod check;
mod values;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::Spanned;
use weir_names::{ContractName, OperationName, PeerName, QueueName, TopicPattern};

pub use self::{
    check::ConfigErrors,
    values::{Caller, Count, Node, Number, Origin, Replicas, Seconds, Sender},
};
pub(crate) use self::{check::KIND, values::is_sender};

/// Most bytes of a file that is read.
const FILE_MAX: u64 = 1 << 20;

/// A file, read and checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The name of this node, unique in the fleet.
    pub node: Node,
    /// The name of the fleet: nodes of other fleets hear nothing of it.
    pub fleet: Node,
    /// The Main of this machine.
    pub main: Spanned<MainSection>,
    /// The NATS server.
    pub nats: Spanned<NatsSection>,
    /// How much may be under way.
    #[serde(default)]
    pub limits: Limits,
    /// What others get of this node.
    #[serde(default)]
    pub export: Export,
    /// What this node gets of others.
    #[serde(default)]
    pub import: Import,
}

/// `[main]`: the Main of this machine, and the peer that the bridge is there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MainSection {
    /// The socket that `main.peer-socket` of Main's file names.
    pub socket: PathBuf,
    /// The name of the bridge as a peer of Main. `node:NODE` if it is not given.
    pub peer: Option<Spanned<PeerName>>,
    /// A file with the peer's token. Without one the user of the process proves the name.
    pub token_file: Option<PathBuf>,
    /// The contract under which the bridge keeps the jobs of queues, as their `store` names it.
    pub store: Option<Spanned<ContractName>>,
}

/// `[nats]`: the server, and how the bridge proves its name there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NatsSection {
    /// Addresses such as `nats://127.0.0.1:4222`. The bridge connects to one of them.
    pub servers: Spanned<Vec<Spanned<String>>>,
    /// A `.creds` file with a JWT and its seed.
    pub credentials_file: Option<PathBuf>,
    /// A file with the seed of an nkey.
    pub nkey_file: Option<PathBuf>,
    /// A user, with `password-file`.
    pub user: Option<String>,
    /// A file with the user's password.
    pub password_file: Option<PathBuf>,
    /// A file with a token.
    pub token_file: Option<PathBuf>,
    /// TLS.
    #[serde(default)]
    pub tls: Tls,
    /// The JetStream domain, where the server with the streams is another one than the bridge's.
    pub jetstream_domain: Option<Spanned<String>>,
    /// The time between pings. After three without an answer the server is away.
    #[serde(default = "Seconds::of::<10>")]
    pub ping_interval: Seconds,
}

/// `[nats.tls]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tls {
    /// Refuse a server without TLS.
    #[serde(default)]
    pub required: bool,
    /// Begin with the handshake of TLS, for a server with `handshake_first`.
    #[serde(default)]
    pub first: bool,
    /// Certificates in PEM that the server's must come from. Without it, those of the system.
    pub ca_file: Option<PathBuf>,
    /// The client's certificate in PEM.
    pub certificate_file: Option<PathBuf>,
    /// The key of the client's certificate in PEM.
    pub key_file: Option<PathBuf>,
}

impl Tls {
    /// Whether a server without TLS is refused: TLS is required or comes first, or certificates are named.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.required || self.first || self.ca_file.is_some() || self.certificate_file.is_some()
    }
}

/// `[limits]`: how much may be under way. Anything beyond that is refused, or waits where it is.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    /// Calls of this Main to other nodes that are under way. Further ones get `overloaded`.
    pub calls: Count,
    /// Calls of other nodes to this Main that are under way. Further ones get `overloaded`.
    pub served: Count,
    /// Events of all exports together that may wait. Of each imported pattern, twice as many or more may wait.
    pub events: Count,
    /// Jobs of each imported queue that are in this Main and not done.
    pub jobs: Count,
    /// How long calls and jobs in hand may take after SIGTERM or SIGINT.
    pub drain_timeout: Seconds,
}

/// `[export]`: what others get of this node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Export {
    /// Contracts that nodes may call here.
    pub contracts: BTreeMap<Spanned<ContractName>, ExportContract>,
    /// Topics whose events other nodes may get.
    pub topics: BTreeMap<Spanned<TopicPattern>, ExportTopic>,
    /// Queues whose jobs other nodes may take.
    pub queues: BTreeMap<Spanned<QueueName>, ExportQueue>,
}

impl Export {
    /// The export of a queue, if there is one.
    pub(crate) fn queue(&self, name: &str) -> Option<&ExportQueue> {
        self.queues.iter().find(|(own, _)| own.as_ref().as_str() == name).map(|(_, export)| export)
    }
}

/// A contract that nodes may call here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExportContract {
    /// Who may call it: `NODE`, `NODE/SENDER` or `*`.
    pub to: Vec<Caller>,
    /// The operations that may be called. All, if it is not given.
    pub operations: Option<Vec<OperationName>>,
}

/// Topics whose events other nodes may get.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExportTopic {
    /// Whose events leave: extensions, peers, `main` or `*`.
    pub senders: Vec<Sender>,
    /// Keep the last event of each topic, for nodes that come later.
    #[serde(default)]
    pub retained: bool,
}

/// A queue whose jobs other nodes may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExportQueue {
    /// Whose jobs leave: extensions, peers, `main` or `*`.
    pub senders: Vec<Sender>,
    /// How the bridge gets them.
    #[serde(default)]
    pub by: QueueBy,
    /// Copies of each job in the cluster, for a stream that the bridge makes.
    pub replicas: Option<Replicas>,
    /// How long the server remembers the ids of jobs, for a stream that the bridge makes.
    #[serde(default = "Seconds::of::<120>")]
    pub duplicate_window: Seconds,
}

/// How the bridge gets the jobs of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueBy {
    /// The queue's `store` is the bridge's: a put returns once JetStream has the job.
    #[default]
    Store,
    /// The bridge takes from the queue as one of its readers: a put returns once Main has the job in memory.
    Take,
}

/// `[import]`: what this node gets of others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Import {
    /// Contracts of other nodes that the bridge serves here.
    pub contracts: BTreeMap<Spanned<ContractName>, ImportContract>,
    /// Topics of other nodes whose events are published here.
    pub topics: BTreeMap<Spanned<TopicPattern>, ImportTopic>,
    /// Queues of the fleet whose jobs are put here.
    pub queues: BTreeMap<Spanned<QueueName>, ImportQueue>,
}

/// A contract of other nodes that the bridge serves here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImportContract {
    /// The nodes that are asked, in this order, until one serves the call; or `*`, any node.
    pub from: Spanned<Vec<Origin>>,
    /// The operations that it has.
    pub operations: Spanned<Vec<OperationName>>,
    /// The name that it has here, if it is another one.
    #[serde(rename = "as")]
    pub alias: Option<Spanned<ContractName>>,
    /// With `as`: which provider is asked first.
    pub prefer: Option<Spanned<Prefer>>,
    /// Its OpenRPC document, so that callers here know its types.
    pub description: Option<PathBuf>,
}

/// Which provider of a contract is asked first, where this node has one of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// This node's. Another node's is asked only if no provider here takes the call.
    #[default]
    Local,
    /// Any of the fleet, this node among them if it exports the contract.
    Any,
}

/// Topics of other nodes whose events are published here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImportTopic {
    /// The nodes whose events come, or `*`.
    pub from: Spanned<Vec<Origin>>,
    /// Begin with the last event of each topic.
    #[serde(default)]
    pub retained: bool,
}

/// A queue of the fleet whose jobs are put here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImportQueue {
    /// The nodes whose jobs are taken, or `*`.
    pub from: Spanned<Vec<Origin>>,
    /// How often this bridge brings a job to its Main before the job is dead.
    #[serde(default = "Count::of::<16>")]
    pub max_deliveries: Count,
    /// The queue of the fleet for dead jobs. Without one they are dropped, and logged.
    pub dead_letter: Option<Spanned<QueueName>>,
    /// How long a job may go without a sign of life from this bridge before another one gets it.
    #[serde(default = "Seconds::of::<30>")]
    pub ack_wait: Seconds,
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has faults.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
}

impl Config {
    /// Reads and checks a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// A file that cannot be read, and one with faults.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Read { path: path.to_owned(), source };
        if fs::metadata(path).map_err(failed)?.len() > FILE_MAX {
            return Err(failed(io::Error::other("it has over 1 MiB")));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Self::parse(&path.display().to_string(), &text, folder)?)
    }

    /// Checks the text of a file. The name is for messages, and paths are relative to the folder.
    ///
    /// # Errors
    /// Every fault with its place.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, ConfigErrors> {
        let mut config: Self =
            toml::from_str(text).map_err(|error| ConfigErrors::of_toml(name, text, &error))?;
        config.check().map_err(|faults| ConfigErrors::new(name, text, faults))?;
        config.resolve(folder);
        Ok(config)
    }

    /// The peer that the bridge is to its Main.
    #[must_use]
    pub fn peer(&self) -> PeerName {
        let own = || format!("node:{}", self.node).parse();
        let given = self.main.as_ref().peer.as_ref().map(|peer| peer.as_ref().clone());
        // The length of a node's name is checked so that `node:NODE` is a valid name of a peer.
        given.or_else(|| own().ok()).unwrap_or_else(|| unreachable!("`node:NODE` is the name of a peer"))
    }

    /// Makes all paths relative to the folder.
    fn resolve(&mut self, folder: &Path) {
        let main = self.main.as_mut();
        main.socket = folder.join(&main.socket);
        let nats = self.nats.as_mut();
        let tls = &mut nats.tls;
        let files = [
            &mut main.token_file,
            &mut nats.credentials_file,
            &mut nats.nkey_file,
            &mut nats.password_file,
            &mut nats.token_file,
            &mut tls.ca_file,
            &mut tls.certificate_file,
            &mut tls.key_file,
        ];
        let described = self.import.contracts.values_mut().map(|contract| &mut contract.description);
        for file in files.into_iter().chain(described).flatten() {
            *file = folder.join(&*file);
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: Count::of::<256>(),
            served: Count::of::<256>(),
            events: Count::of::<1024>(),
            jobs: Count::of::<64>(),
            drain_timeout: Seconds::of::<10>(),
        }
    }
}

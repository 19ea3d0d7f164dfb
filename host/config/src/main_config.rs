//! The configuration of Main itself.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_names::ContractName;

use super::{
    ConfigErrors, TrustedKey,
    environment::Environment,
    error::{ConfigError, Location},
    key::Table,
    kind::{flag, number, path, socket, texts, word},
    limits::TIMEOUT,
    loader,
    read::FileReader,
    section::nearest,
    sections::{CONTRACT, HOST_DIR, SOCKET, artifact_text, socket_in},
    shape::Shape,
};
use crate::{keys, words};

const CONTROL_SOCKET: &str = "control-socket";

const TRUSTED_KEY: &str = "a public key, as `weir keygen` shows it";

/// The range of the cache's size.
const CACHE: Shape = Shape::Size(0..=1 << 40);

/// The range of other sizes in `[main]`: 1 MiB to 1 TiB.
const BYTES: Shape = Shape::Size(1 << 20..=1 << 40);

/// The configuration of Main itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MainConfig {
    /// Contracts that the embedding program serves, unless an extension or a peer fulfills them.
    pub serves: Vec<ContractName>,
    /// The Unix socket for the `weir` command, at most 107 bytes. Default: `weir/weir.sock` in `XDG_RUNTIME_DIR`, or in
    /// `/run` if that is unset or relative.
    pub control_socket: PathBuf,
    /// The Unix socket for peers, at most 107 bytes. With `None` there is no socket.
    pub peer_socket: Option<PathBuf>,
    /// The directory that contains every component. With `None`, components may be anywhere. A configuration from a
    /// file has a directory.
    pub plugin_dir: Option<PathBuf>,
    /// The cache of compiled code. Main creates it with mode 700 and owns it, so it contains no component. With `None` it
    /// is [where a file without this key has it](Self::default_cache_dir). But where that directory cannot be made, or
    /// another part of the configuration speaks against it, there is no cache.
    pub cache_dir: Option<PathBuf>,
    /// Size of Main's files in [`cache_dir`](Self::cache_dir), in bytes: up to 1 TiB. The least recently used are removed
    /// first. With 0 there is no cache. `None` is a tenth of the file system, and 64 MiB to 4 GiB.
    pub cache_size: Option<u64>,
    /// The directory of the key-value stores' files. Main creates it with mode 700. `None` allows no stores.
    pub data_dir: Option<PathBuf>,
    /// The directory of what Main must remember: the proven versions of extensions with
    /// [`update`](super::ExtensionConfig::update). Main creates it with mode 700. With `None`, Main keeps them in memory.
    pub state_dir: Option<PathBuf>,
    /// Size of the components that Main keeps in [`state_dir`](Self::state_dir), in bytes: 1 MiB to 1 TiB. Default: 1
    /// GiB.
    pub state_size: u64,
    /// Artifacts run if they are signed with the private half of one of these keys, and with
    /// [`require_signature`](Self::require_signature) components too.
    pub trusted_keys: Vec<TrustedKey>,
    /// Whether components run only if they are signed with the private half of one of
    /// [`trusted_keys`](Self::trusted_keys).
    pub require_signature: bool,
    /// The file with the keys and components that never run: see [`Revoked`](super::Revoked). `None` revokes nothing.
    pub revoked: Option<PathBuf>,
    /// Bound on the memory of all extensions ([`ExtensionConfig::memory_sum`](super::ExtensionConfig::memory_sum)),
    /// peers, queues, stores and hooks together, in bytes: 1 MiB to 1 TiB. `None` sets no bound.
    pub memory_budget: Option<u64>,
    /// How much address space the memories of extensions and hooks may reserve. Default: as this process has it.
    pub address_space: AddressSpace,
    /// Timeout of a request if neither the call nor its contract sets one: 1 ms to 1 day. Default: 5 seconds.
    pub request_timeout: Duration,
    /// One of this many traces is recorded: up to 1,000,000. Default: 0, which records only traces that the control
    /// interface is asked to record.
    pub trace_one_in: u32,
    /// Spans kept: 1 to 1,000,000. Default: 4096. Each takes about 300 bytes.
    pub trace_spans: u32,
    /// Threads for blocking work, such as reading files: 1 to 64. Default: 4.
    pub blocking_threads: u16,
}

impl MainConfig {
    /// Where a configuration has its cache that does not say where: the first of `$CACHE_DIRECTORY`, else
    /// `$XDG_CACHE_HOME/weir`, `$HOME/.cache/weir` or `/var/cache/weir`. Variables with a relative path are ignored.
    #[must_use]
    pub fn default_cache_dir() -> PathBuf {
        default_cache_dir(&Environment::of_process())
    }

    /// The directory of the cache, if there is one.
    #[must_use]
    pub fn cache(&self) -> Option<&Path> {
        self.cache_dir.as_deref().filter(|_| self.cache_size != Some(0))
    }

    /// The control socket of the Main that runs with this file. Ignores other keys, included files, and the
    /// environment except for the default. So it answers even if [`Loader::load`](super::Loader::load) cannot read the
    /// file.
    ///
    /// # Errors
    ///
    /// Fails if the file is unreadable, or its socket wrong, misspelt or hidden by a syntax error: the caller may be
    /// about to stop the Main at that socket.
    pub fn control_socket_of(file: &Path) -> Result<PathBuf, ConfigErrors> {
        let (source, _) = loader::open(file)?;
        let mut reader = FileReader::new(source.into());
        let found = reader.read(|file| {
            file.table("main", |main| {
                let dir = main.dir().to_owned();
                main.text(CONTROL_SOCKET, SOCKET, |text| socket_in(&dir, text))
            })
        });
        let (mut errors, more) = reader.finish();
        errors.retain(|error| concerns_socket(error, found.is_some()));
        match found {
            _ if !errors.is_empty() => Err(ConfigErrors::new(errors, more)),
            Some(socket) => Ok(socket.value),
            None => Ok(Self::default().control_socket),
        }
    }
}

impl Table for MainConfig {
    keys! {
        MainConfig;
        /// Contracts that the embedding program serves itself. An extension or a peer that fulfills one of them takes
        /// precedence.
        "serves" serves = texts(CONTRACT, str::parse).hidden();
        /// The Unix socket through which the `weir` command reaches Main.
        "control-socket" control_socket = socket(), default("`$XDG_RUNTIME_DIR/weir/weir.sock`; without that variable `/run/weir/weir.sock`");
        /// The Unix socket through which [peers](#peername) reach Main. Not `main.control-socket`.
        "peer-socket" peer_socket = socket().optional(), default("no socket");
        /// The directory with the components of all extensions. None can be outside.
        "plugin-dir" plugin_dir = path(HOST_DIR).optional(), default("the directory of the main file"), at_once();
        /// Where Main keeps compiled code, so that it compiles nothing twice. Main makes the directory for itself
        /// alone: neither a component nor `main.plugin-dir` can be in it. Variables with a relative path are ignored.
        "cache-dir" cache_dir = path(HOST_DIR).optional(), default("`$CACHE_DIRECTORY`, which systemd sets; else `$XDG_CACHE_HOME/weir`, `$HOME/.cache/weir` or `/var/cache/weir`");
        /// Where Main keeps the files of [stores](#storename): it must be set if there is one. Main makes the directory
        /// for itself alone. No directory that a guest may write to can overlap with it.
        "data-dir" data_dir = path(HOST_DIR).optional(), default("no stores");
        /// The size of all of Main's files in `main.cache-dir`. The least recently used go first.
        /// With 0 there is no cache.
        "cache-size" cache_size = number(CACHE).optional(), default("a tenth of the file system, and `64 MiB` to `4 GiB`");
        /// Where Main keeps what it must remember: the proven versions of extensions with
        /// [`update`](updates.md). Main makes the directory for itself alone, with mode 700: neither a component nor
        /// `main.plugin-dir` can be in it, and it cannot overlap with `main.cache-dir` or `main.data-dir`. No directory
        /// that a guest may write to can overlap with it.
        "state-dir" state_dir = path(HOST_DIR).optional(), default("versions are kept in memory");
        /// The size of all components that Main keeps in `main.state-dir`: [what goes first](updates.md).
        "state-size" state_size = number(BYTES);
        /// Main runs a compiled artifact only if it was signed with the private half of one of these keys. With
        /// `main.require-signature`, the same holds for components. To change keys, [list both for a
        /// while](security.md#signed-components).
        "trusted-keys" trusted_keys = texts(TRUSTED_KEY, artifact_text), at_once();
        /// Whether the component of each extension and hook must have a [signature](security.md#signed-components) by
        /// one of `main.trusted-keys` beside it, in `NAME.wasm.sig`. It is verified before anything looks into the
        /// component.
        "require-signature" require_signature = flag(), at_once();
        /// The file with the keys and hashes of what [never runs again](security.md#revocation). Main reads it at each
        /// start, and at each `weir reload` without an id, and does neither without it.
        "revoked" revoked = path("the path of a list of keys and hashes").optional(), default("nothing is revoked"), at_once();
        /// What the limits of all extensions, peers, queues, stores and hooks [add up to](#the-memory-budget) at most.
        /// More is refused before anything starts, with the sum of each.
        "memory-budget" memory_budget = number(BYTES), default("no bound"), at_once();
        /// How much [address space](devices.md#the-address-space) the memories of extensions and hooks reserve. `small`
        /// fits 39 bits of addresses, and needs artifacts that were compiled for it.
        "address-space" address_space = word();
        /// The deadline of a request, if neither the call nor the serving extension sets a timeout.
        "request-timeout" request_timeout = number(Shape::Time(TIMEOUT));
        /// Of so many [traces](tracing.md) that begin here, one is recorded: 1 records all, 0 none but those that an
        /// operator asks for.
        "trace-one-in" trace_one_in = number(Shape::Count(0..=1_000_000)), at_once();
        /// Spans kept. A span takes about 300 bytes, once it is recorded.
        "trace-spans" trace_spans = number(Shape::Count(1..=1_000_000)), at_once();
        /// Threads of the pool for blocking work, such as reading files. All extensions run on one other thread.
        "blocking-threads" blocking_threads = number(Shape::Count(1..=64));
    }
}

impl MainConfig {
    /// The sockets that Main listens on itself, by their keys.
    pub fn sockets(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let peer_socket = self.peer_socket.as_deref().map(|socket| ("main.peer-socket", socket));
        [("main.control-socket", &*self.control_socket)].into_iter().chain(peer_socket)
    }
}

impl Default for MainConfig {
    fn default() -> Self {
        Self {
            serves: Vec::new(),
            control_socket: default_control_socket(env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)),
            peer_socket: None,
            plugin_dir: None,
            cache_dir: None,
            cache_size: None,
            data_dir: None,
            state_dir: None,
            state_size: 1 << 30,
            trusted_keys: Vec::new(),
            require_signature: false,
            revoked: None,
            memory_budget: None,
            address_space: AddressSpace::default(),
            request_timeout: Duration::from_secs(5),
            trace_one_in: 0,
            trace_spans: 4096,
            blocking_threads: 4,
        }
    }
}

/// The default control socket. Ignores a relative directory, as the XDG Base Directory Specification says.
pub(super) fn default_control_socket(runtime_dir: Option<PathBuf>) -> PathBuf {
    let dir = runtime_dir.filter(|dir| dir.is_absolute()).unwrap_or_else(|| PathBuf::from("/run"));
    dir.join("weir").join("weir.sock")
}

/// Whether the error makes the control socket uncertain.
fn concerns_socket(error: &ConfigError, is_found: bool) -> bool {
    // A syntax error concerns the socket if the key, broken or repeated, is on its line.
    let is_named = |location: &Location| {
        let line = location.source.text.lines().nth(location.line() - 1);
        line.is_some_and(|line| line.contains(CONTROL_SOCKET))
    };
    match error.key() {
        "" => !is_found || error.location().is_some_and(is_named),
        "main" => true,
        key => {
            key.strip_prefix("main.").is_some_and(|key| nearest(key, [CONTROL_SOCKET].into_iter()).is_some())
        }
    }
}

/// The first cache directory that systemd made for the unit (systemd.exec(5)), else `weir` in that of the user (XDG
/// Base Directory Specification), else in that of the machine. As the specification says, relative paths are ignored.
pub(super) fn default_cache_dir(environment: &Environment) -> PathBuf {
    let variable = |name| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_unit =
        || env::split_paths(environment.get("CACHE_DIRECTORY")?).next().filter(|path| path.is_absolute());
    let of_user = || variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    of_unit().unwrap_or_else(|| of_user().unwrap_or_else(|| PathBuf::from("/var/cache")).join("weir"))
}

/// How much address space the memories of extensions and hooks may reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressSpace {
    /// [`Small`](Self::Small) where this process has 39 bits of addresses or less, else [`Large`](Self::Large).
    #[default]
    Auto,
    /// More than 4 GiB for each memory: compiled code needs fewer checks.
    Large,
    /// At most 64 MiB for each memory; a memory that grows further moves.
    Small,
}

words!(AddressSpace, "": "auto" = Auto, "large" = Large, "small" = Small);

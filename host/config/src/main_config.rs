//! The configuration of Main itself.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_names::ContractName;

use super::{AddressSpace, ConfigErrors, TrustedKey, control_socket, limits::TIMEOUT, shape::Shape};

pub(super) const BLOCKING_THREADS: RangeInclusive<u16> = 1..=64;

pub(super) const TRACE_ONE_IN: RangeInclusive<u32> = 0..=1_000_000;

pub(super) const TRACE_SPANS: RangeInclusive<u32> = 1..=1_000_000;

/// In bytes: 1 MiB to 1 TiB.
pub(super) const CACHE_SIZE: Shape = Shape::Size(1 << 20..=1 << 40);

/// In bytes: 1 MiB to 1 TiB.
pub(super) const MEMORY_BUDGET: Shape = Shape::Size(1 << 20..=1 << 40);

/// The configuration of Main itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MainConfig {
    /// Contracts that the embedding program serves, unless an extension or a peer fulfills them.
    pub serves: Vec<ContractName>,
    /// The Unix socket for the `weir` command, at most 107 bytes. Default: `weir/weir.sock` in `XDG_RUNTIME_DIR`, or
    /// in `/run` without it.
    pub control_socket: PathBuf,
    /// The Unix socket for peers, at most 107 bytes. `None`: no socket.
    pub peer_socket: Option<PathBuf>,
    /// The directory that contains every component. `None`: components may be anywhere. A configuration from a file
    /// has one.
    pub plugin_dir: Option<PathBuf>,
    /// The cache of compiled code. Main creates it with mode 700 and owns it, so it contains no component. `None`: no
    /// cache. A configuration from a file has one.
    pub cache_dir: Option<PathBuf>,
    /// Size of Main's files in [`cache_dir`](Self::cache_dir), in bytes: 1 MiB to 1 TiB. Default: 256 MiB. The least
    /// recently used are removed first.
    pub cache_size: u64,
    /// The directory of the key-value stores' files. Main creates it with mode 700. `None`: no stores.
    pub data_dir: Option<PathBuf>,
    /// Artifacts run if they are signed with the private half of one of these keys.
    pub trusted_keys: Vec<TrustedKey>,
    /// Bound on the sum of all extensions' [`ExtensionConfig::memory_sum`](super::ExtensionConfig::memory_sum), in
    /// bytes: 1 MiB to 1 TiB. `None`: no bound.
    pub memory_budget: Option<u64>,
    /// How much address space the memories of extensions and hooks may reserve. Default: as this process has it.
    pub address_space: AddressSpace,
    /// Timeout of a request if neither the call nor its contract sets one: 1 ms to 1 day. Default: 5 seconds.
    pub request_timeout: Duration,
    /// Of so many traces, one is recorded: up to 1,000,000. Default: 0, none but those that the control interface is asked
    /// to record.
    pub trace_one_in: u32,
    /// Spans kept: 1 to 1,000,000. Default: 4096. Each takes about 300 bytes.
    pub trace_spans: u32,
    /// Threads for blocking work, such as reading files: 1 to 64. Default: 4.
    pub blocking_threads: u16,
}

impl MainConfig {
    /// The control socket of the Main that runs with this file. Ignores other keys, included files, and the
    /// environment except for the default. So it answers even if [`Loader::load`](super::Loader::load) cannot read the
    /// file.
    ///
    /// # Errors
    ///
    /// Fails if the file or its socket is unreadable.
    pub fn control_socket_of(file: &Path) -> Result<PathBuf, ConfigErrors> {
        control_socket::of_file(file)
    }

    pub(super) fn out_of_range(&self) -> Vec<(String, String)> {
        let budget = self.memory_budget.is_none_or(|budget| MEMORY_BUDGET.has(budget));
        [
            ("main.cache-size", CACHE_SIZE.has(self.cache_size), CACHE_SIZE),
            ("main.memory-budget", budget, MEMORY_BUDGET),
            ("main.request-timeout", TIMEOUT.contains(&self.request_timeout), Shape::Time(TIMEOUT)),
            ("main.trace-one-in", TRACE_ONE_IN.contains(&self.trace_one_in), Shape::counts(TRACE_ONE_IN)),
            ("main.trace-spans", TRACE_SPANS.contains(&self.trace_spans), Shape::counts(TRACE_SPANS)),
            (
                "main.blocking-threads",
                BLOCKING_THREADS.contains(&self.blocking_threads),
                Shape::counts(BLOCKING_THREADS),
            ),
        ]
        .into_iter()
        .filter(|(_, within, _)| !within)
        .map(|(key, _, shape)| (key.to_owned(), format!("`{key}` must be {shape}")))
        .collect()
    }
}

impl Default for MainConfig {
    fn default() -> Self {
        Self {
            serves: Vec::new(),
            control_socket: default_control_socket(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)),
            peer_socket: None,
            plugin_dir: None,
            cache_dir: None,
            cache_size: 256 << 20,
            data_dir: None,
            trusted_keys: Vec::new(),
            memory_budget: None,
            address_space: AddressSpace::default(),
            request_timeout: Duration::from_secs(5),
            trace_one_in: 0,
            trace_spans: 4096,
            blocking_threads: 4,
        }
    }
}

/// Ignores relative paths, as the XDG Base Directory Specification says.
pub(super) fn default_control_socket(runtime_dir: Option<PathBuf>) -> PathBuf {
    let dir = runtime_dir.filter(|dir| dir.is_absolute()).unwrap_or_else(|| PathBuf::from("/run"));
    dir.join("weir").join("weir.sock")
}

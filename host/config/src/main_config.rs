//! What is configured of Main itself.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_names::ContractName;

use super::{ConfigErrors, TrustedKey, control_socket, limits::TIMEOUT, shape::Shape};

pub(super) const BLOCKING_THREADS: RangeInclusive<u16> = 1..=64;

/// In bytes: 1 MiB to 1 TiB.
pub(super) const CACHE_SIZE: Shape = Shape::Size(1 << 20..=1 << 40);

/// In bytes: 1 MiB to 1 TiB.
pub(super) const MEMORY_BUDGET: Shape = Shape::Size(1 << 20..=1 << 40);

/// What is configured of Main itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MainConfig {
    /// Contracts that the embedding program serves. An extension that fulfills one of them goes
    /// before Main.
    pub serves: Vec<ContractName>,
    /// The Unix socket on which the `weir` command reaches Main: `weir.sock` in `weir` in
    /// `XDG_RUNTIME_DIR`, or where that is not set in `/run/weir`. At most 107 bytes.
    pub control_socket: PathBuf,
    /// The directory that holds the component of every extension. None: they may be anywhere; a
    /// configuration from a file always has one.
    pub plugin_dir: Option<PathBuf>,
    /// The directory where Main keeps what it has compiled, which it makes with mode 700 and fills as its
    /// own: no component is in it. None: it keeps nothing; a configuration from a file always has one.
    pub cache_dir: Option<PathBuf>,
    /// Bytes that Main's files in [`cache_dir`](Self::cache_dir) may have together: 1 MiB to 1 TiB, at first
    /// 256 MiB. What was not used for longest goes first.
    pub cache_size: u64,
    /// Whose artifacts are run: those that somebody signed with the private half of one of these keys.
    pub trusted_keys: Vec<TrustedKey>,
    /// Bytes that the limits of all extensions may come to, each with
    /// [`ExtensionConfig::memory_sum`](super::ExtensionConfig::memory_sum): 1 MiB to 1 TiB. None: any number.
    pub memory_budget: Option<u64>,
    /// For a request where neither the call nor its contract sets a timeout: 1 ms to 1 day, at first
    /// 5 seconds.
    pub request_timeout: Duration,
    /// Threads of the pool for work that blocks, such as reading files: 1 to 64, at first 4.
    pub blocking_threads: u16,
}

impl MainConfig {
    /// Where the Main that runs with this file has its control socket. Nothing else of the file is
    /// judged, no other file is read, and the environment changes nothing but the default: it answers,
    /// whatever else keeps [`Loader::load`](super::Loader::load) from reading the file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or what it says of the socket cannot.
    pub fn control_socket_of(file: &Path) -> Result<PathBuf, ConfigErrors> {
        control_socket::of_file(file)
    }

    /// Every value that is out of its range: the key and what is wrong.
    pub(super) fn out_of_range(&self) -> Vec<(String, String)> {
        let budget = self.memory_budget.is_none_or(|budget| MEMORY_BUDGET.has(budget));
        [
            ("main.cache-size", CACHE_SIZE.has(self.cache_size), CACHE_SIZE),
            ("main.memory-budget", budget, MEMORY_BUDGET),
            ("main.request-timeout", TIMEOUT.contains(&self.request_timeout), Shape::Time(TIMEOUT)),
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
            plugin_dir: None,
            cache_dir: None,
            cache_size: 256 << 20,
            trusted_keys: Vec::new(),
            memory_budget: None,
            request_timeout: Duration::from_secs(5),
            blocking_threads: 4,
        }
    }
}

/// The XDG Base Directory Specification says to ignore a path that is not absolute.
pub(super) fn default_control_socket(runtime_dir: Option<PathBuf>) -> PathBuf {
    let dir = runtime_dir.filter(|dir| dir.is_absolute()).unwrap_or_else(|| PathBuf::from("/run"));
    dir.join("weir").join("weir.sock")
}

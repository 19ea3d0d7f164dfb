//! What an operator configures: the TOML file, its checks, and the same from Rust.
//!
//! Owns the keys, their ranges and defaults, and every message about them. Knows nothing of wasmtime,
//! of the bus, and of whether the files, contracts and addresses that are named exist.

mod artifact;
mod cache_dir;
mod changes;
mod check;
mod classes;
mod component_source;
mod control_socket;
mod environment;
mod error;
mod extension;
mod file;
mod grants;
mod hooks;
mod limits;
mod main_config;
mod named;
mod order;
mod policy;
mod queue;
mod read;
mod restart;
mod section;
mod sections;
mod shape;
mod subscribe;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use weir_names::{HookDirName, QueueName, Topic};

pub use self::shape::bytes;
pub use artifact::{ArtifactHash, ArtifactTextError, TrustedKey};
pub use component_source::ComponentSource;
use environment::Environment;
pub use error::{ConfigError, ConfigErrors};
pub use extension::ExtensionConfig;
pub use grants::{DirGrant, DirMode, GrantError, Grants, GuestPath, NetGrant};
pub use hooks::{ExitCodes, HOOKS_CONTRACT, HookDirConfig};
pub use limits::{
    FixedLimits, InHooks, LIMIT_KEYS, LimitHit, LimitKey, LimitName, LimitSource, LimitUnit, LimitValue,
    Limits, MeasuredUse, seconds, source,
};
pub use main_config::MainConfig;
pub use queue::{QueueConfig, TopicConfig};
pub use restart::{ReloadMode, RestartConfig, RestartPolicy};
pub use shape::Shape;
pub use subscribe::SubscribeGrant;
pub use weir_names::{CpuShare, CpuShareError};

/// Main and its extensions, as configured.
///
/// From a file it is checked. One that is made in Rust is checked by [`Config::check`], and the
/// environment does not change its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// What is configured of Main itself.
    pub main: MainConfig,
    /// The extensions, as they stand in the files.
    pub extensions: Vec<ExtensionConfig>,
    /// The shared queues. One that is named as a `dead_letter` need not be here.
    pub queues: BTreeMap<QueueName, QueueConfig>,
    /// The topics that Main treats in a way of their own.
    pub topics: BTreeMap<Topic, TopicConfig>,
    /// The directories of hooks.
    pub hooks: BTreeMap<HookDirName, HookDirConfig>,
    /// The main file that it was read from.
    file: Option<PathBuf>,
}

impl Config {
    /// Main and its extensions, without queues, not checked.
    #[must_use]
    pub fn new(main: MainConfig, extensions: Vec<ExtensionConfig>) -> Self {
        Self { main, extensions, ..Self::default() }
    }

    /// Bytes that the queues and the hooks count against the memory budget.
    pub fn memory_beside_extensions(&self) -> u64 {
        let queues = self.all_queues().into_values().map(|queue| queue.bytes);
        let hooks = self.hooks.values().map(HookDirConfig::memory_sum);
        queues.chain(hooks).fold(0, u64::saturating_add)
    }

    /// The queues, with those that are only named as a `dead_letter`: these have the larger bounds of all whose
    /// dead letters they get.
    pub fn all_queues(&self) -> BTreeMap<QueueName, QueueConfig> {
        queue::with_dead_letters(&self.queues)
    }

    /// Topics whose last value is kept.
    pub fn retained(&self) -> Vec<Topic> {
        self.topics.iter().filter(|(_, config)| config.retain).map(|(topic, _)| topic.clone()).collect()
    }

    /// Main and the extensions, for a Main: each knows where its file must be, and of how many instances
    /// which one it is.
    pub fn into_parts(self) -> (MainConfig, Vec<ExtensionConfig>) {
        let plugin_dir = self.main.plugin_dir.clone();
        let copies = |extension: ExtensionConfig| extension.in_copies(plugin_dir.clone());
        (self.main, self.extensions.into_iter().flat_map(copies).collect())
    }

    /// Reads a file, and those that it includes.
    ///
    /// Variables of this process's environment that start with `WEIR_LIMITS_` go before what the files
    /// say of a class: `WEIR_LIMITS_MEDIUM_STACK="2 MiB"` stands for `stack = "2 MiB"` in the class
    /// `medium`, built in or not. Those that say where the machine has its caches are the default of
    /// [`MainConfig::cache_dir`].
    ///
    /// # Errors
    ///
    /// Fails with all that is wrong with them: syntax, keys, values, and what [`Config::check`] finds.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        file::load(path, &Environment::of_process())
    }

    /// Reads a text as [`Config::load`] reads a file. Messages call it `name`, and paths in it are
    /// relative to `base_dir`. It heeds the same variables.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn parse(text: &str, name: &str, base_dir: &Path) -> Result<Self, ConfigErrors> {
        file::parse(text.to_owned(), name, base_dir, &Environment::of_process())
    }

    /// The file that [`Config::load`] read, absolute. None: it was parsed from a text, or made in Rust.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Checks ranges, and what must hold between the parts.
    ///
    /// # Errors
    ///
    /// Fails with every value out of its range, limits and delays that contradict each other, two
    /// extensions with one id, two owners of one contract, required contracts that nobody serves, queues that are
    /// granted and not there, hooks that may be run and are not there, rounds of `requires` and of dead letters,
    /// doubled entries and guest directories, paths outside the plugin directory or inside the cache, directories
    /// granted for writing that overlap with the cache or with those of hooks, exit codes with two meanings, if all
    /// values are in their ranges, subscriptions that may have more waiting than the inbox, and if there is nothing
    /// else, limits, queues and hooks that come to more than the memory budget.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        let mut errors = check::values(self);
        let locations = check::Locations::default();
        if errors.is_empty() {
            errors.extend(check::subscriptions(self, &locations));
        }
        errors.extend(check::between_parts(self, &locations, true));
        if errors.is_empty() {
            errors.extend(check::memory_budget(self, &locations));
        }
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors::new(errors, 0)) }
    }

    /// What is likely to be a mistake and is no error: contracts that somebody wants and nobody is
    /// configured to serve, delays of restarts that are so long that quarantine never comes, and queues into
    /// which larger jobs can be put than any extension takes.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = check::unmet_wants(self);
        warnings.extend(check::without_quarantine(self));
        warnings.extend(check::jobs_for_nobody(self));
        warnings
    }
}

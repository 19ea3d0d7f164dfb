//! The whole configuration.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use weir_names::{ContractName, QueueName, Topic};

use super::{
    ConfigError, ConfigErrors, ExtensionConfig, Loader, MainConfig, QueueConfig, TopicConfig, check, queue,
    schema::{ConfigSection, SectionLocations, Sections},
};

/// Main and its extensions, as configured.
///
/// From a file it is checked. One that is made in Rust is checked by [`Config::check`], and the
/// environment does not change its limits.
#[derive(Clone, Default, PartialEq)]
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
    /// What other crates bring.
    pub(super) sections: Sections,
    /// The main file that it was read from.
    pub(super) file: Option<ConfigFile>,
    /// Where its parts stand in the files.
    pub(super) read_from: check::ReadFrom,
}

impl Config {
    /// Main and its extensions, without queues, not checked.
    #[must_use]
    pub fn new(main: MainConfig, extensions: Vec<ExtensionConfig>) -> Self {
        Self { main, extensions, ..Self::default() }
    }

    /// Bytes that the queues and the sections of other crates count against the memory budget.
    pub fn memory_beside_extensions(&self) -> u64 {
        let queues = self.all_queues().into_values().map(|queue| queue.bytes);
        let nowhere = SectionLocations::nowhere(&self.sections);
        let sections =
            self.sections.all().flat_map(|section| section.memory(&nowhere)).map(|part| part.bytes);
        queues.chain(sections).fold(0, u64::saturating_add)
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

    /// What is configured of a section that another crate brings. None: no file was read by a loader that
    /// has it registered, and no program has set it.
    #[must_use]
    pub fn section<S: ConfigSection>(&self) -> Option<&S> {
        self.sections.get()
    }

    /// Has this from now on as what is configured of the section.
    pub fn set_section<S: ConfigSection>(&mut self, section: S) {
        self.sections.set(section);
    }

    /// Contracts that Main serves because of sections that other crates bring.
    #[must_use]
    pub fn contracts_of_sections(&self) -> Vec<ContractName> {
        self.sections.all().flat_map(|section| section.serves()).collect()
    }

    /// The file that a [`Loader`] read. None: it was parsed from a text, or made in Rust.
    #[must_use]
    pub fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// Checks ranges, and what must hold between the parts. A section that nobody has set is not judged: a Main
    /// judges those of its own crates when it starts, too.
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
        let locations = check::ReadFrom::default().locations(&self.sections);
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

    /// Directories that are granted or have hooks and are not there, on this machine and now. That is no error: a file
    /// system may be mounted later, and the configuration may be for another machine.
    #[must_use]
    pub fn absent_dirs(&self) -> Vec<ConfigError> {
        check::absent_dirs(self, &self.read_from.locations(&self.sections))
    }

    /// What is wrong with the component of the extension with this place in the list, as an error that points at its
    /// `path`, or at `sha256` where it is not the one that is `pinned`.
    #[must_use]
    pub fn component_error(&self, extension: usize, pinned: bool, message: impl Into<String>) -> ConfigError {
        let id = self.extensions.get(extension).map(|extension| extension.id.to_string());
        let locations = self.read_from.locations(&self.sections);
        let at = locations.extensions.get(extension);
        let (key, location) = match at {
            Some(at) if pinned => ("sha256", at.sha256.as_ref()),
            at => ("path", at.map(|at| &at.path)),
        };
        ConfigError::new(format!("extension[{}].{key}", id.unwrap_or_default()), message, location.cloned())
    }
}

/// Sections of other crates stand there under the names of their tables.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { main, extensions, queues, topics, sections, file, read_from: _ } = self;
        let mut debug = f.debug_struct("Config");
        debug.field("main", main).field("extensions", extensions).field("queues", queues);
        debug.field("topics", topics);
        for section in sections.all() {
            debug.field(section.table(), &section);
        }
        debug.field("file", file).finish()
    }
}

/// The file that a configuration was read from, and with what.
#[derive(Clone)]
pub struct ConfigFile {
    path: PathBuf,
    loader: Loader,
}

impl ConfigFile {
    pub(super) fn new(path: PathBuf, loader: Loader) -> Self {
        Self { path, loader }
    }

    /// Where it is, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it again, by a loader that knows the same sections.
    ///
    /// # Errors
    ///
    /// As [`Loader::load`].
    pub fn read(&self) -> Result<Config, ConfigErrors> {
        self.loader.load(&self.path)
    }
}

impl PartialEq for ConfigFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

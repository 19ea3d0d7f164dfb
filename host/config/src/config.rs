//! The whole configuration.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use weir_names::{ContractName, QueueName, Topic};

use super::{
    ConfigError, ConfigErrors, ExtensionConfig, Loader, MainConfig, PeerConfig, QueueConfig, TopicConfig,
    check::{self, Judged},
    key::Places,
    queue,
    schema::{ConfigSection, SectionLocations, Sections},
};

/// The configuration of Main, its extensions and its peers.
///
/// A configuration from a file is checked. [`Config::check`] checks one made in Rust; environment variables do not
/// change its limits.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Main.
    pub main: MainConfig,
    /// The extensions, in the order of the files.
    pub extensions: Vec<ExtensionConfig>,
    /// Programs outside Main that may connect to it, in the order of the files.
    pub peers: Vec<PeerConfig>,
    /// The shared queues. A queue named only as a `dead_letter` may be absent.
    pub queues: BTreeMap<QueueName, QueueConfig>,
    /// Topics with settings.
    pub topics: BTreeMap<Topic, TopicConfig>,
    pub(super) sections: Sections,
    pub(super) file: Option<ConfigFile>,
    /// The tables of the files' classes, as text.
    pub(super) class_texts: Arc<str>,
    /// Places of the parts in the files.
    pub(super) read_from: ReadFrom,
}

impl Config {
    /// Main and its extensions without peers and queues. Not checked.
    #[must_use]
    pub fn new(main: MainConfig, extensions: Vec<ExtensionConfig>) -> Self {
        Self { main, extensions, ..Self::default() }
    }

    /// Memory of peers, queues and other crates' sections that counts against the budget, in bytes.
    pub fn memory_beside_extensions(&self) -> u64 {
        let peers = self.peers.iter().map(PeerConfig::memory_sum);
        let queues = self.all_queues().into_values().map(|queue| queue.bytes);
        let nowhere = SectionLocations::nowhere(&self.sections);
        let sections =
            self.sections.all().flat_map(|section| section.memory(&nowhere)).map(|part| part.bytes);
        peers.chain(queues).chain(sections).fold(0, u64::saturating_add)
    }

    /// The queues, including those named only as a `dead_letter`. Such a queue has the largest bounds of all queues
    /// that send dead letters to it.
    pub fn all_queues(&self) -> BTreeMap<QueueName, QueueConfig> {
        queue::with_dead_letters(&self.queues)
    }

    /// Topics with a retained value.
    pub fn retained(&self) -> Vec<Topic> {
        self.topics.iter().filter(|(_, config)| config.retain).map(|(topic, _)| topic.clone()).collect()
    }

    /// Main and its extensions, with one entry for each instance. Each has the plugin directory.
    pub fn into_parts(self) -> (MainConfig, Vec<ExtensionConfig>) {
        let plugin_dir = self.main.plugin_dir.clone();
        let copies = |extension: ExtensionConfig| extension.in_copies(plugin_dir.clone());
        (self.main, self.extensions.into_iter().flat_map(copies).collect())
    }

    /// This configuration with these parts of it, as [`into_parts`](Self::into_parts) gives them.
    #[must_use]
    pub fn with_parts(self, main: MainConfig, parts: impl IntoIterator<Item = ExtensionConfig>) -> Self {
        let mut extensions: Vec<ExtensionConfig> = Vec::new();
        for part in parts {
            let original = part.copy_of.as_ref();
            match extensions.iter_mut().rfind(|extension| Some(&extension.id) == original) {
                Some(original) => original.instances += 1,
                None => extensions.push(ExtensionConfig { canary: None, ..part }),
            }
        }
        Self { main, extensions, ..self }
    }

    /// Another crate's section. `None` if neither a loader that knows the section nor the program set it.
    #[must_use]
    pub fn section<S: ConfigSection>(&self) -> Option<&S> {
        self.sections.get()
    }

    /// Replaces another crate's section.
    pub fn set_section<S: ConfigSection>(&mut self, section: S) {
        self.sections.set(section);
    }

    /// Contracts that Main serves because of other crates' sections.
    #[must_use]
    pub fn contracts_of_sections(&self) -> Vec<ContractName> {
        self.sections.all().flat_map(|section| section.serves()).collect()
    }

    /// The file that a [`Loader`] read. `None` for a text or a configuration made in Rust.
    #[must_use]
    pub fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// Checks ranges, and rules between the parts. Skips sections that are not set; Main checks its own crates'
    /// sections at its start.
    ///
    /// # Errors
    ///
    /// Returns all faults:
    ///
    /// - values out of range, and limits or delays that contradict each other;
    /// - repeated ids and names, contracts with two owners, and tokens of two peers;
    /// - required contracts without a provider, and unknown queues, hooks and stores in grants;
    /// - queues with a `store` that no peer fulfills, or that its peer may not put jobs into;
    /// - a socket for peers that is the control socket;
    /// - cycles of `requires` and of dead letters;
    /// - repeated list items and guest directories;
    /// - components' paths outside the plugin directory or inside the cache or the state directory, or that differ
    ///   only in upper and lower case; a plugin directory inside one of those two;
    /// - a state directory that overlaps with the cache or the data directory;
    /// - directories granted for writing that overlap with the cache, the data directory, the state directory or hooks;
    /// - exit codes with two meanings;
    /// - if all values are in range: subscriptions with more room than the inbox;
    /// - if nothing else is wrong: a sum of limits, peers, queues, hooks and stores over the memory budget.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        self.check_parts(true)
    }

    /// Checks that no directory granted for writing overlaps with the cache, the data directory or the state directory of
    /// a Main that runs with `running`: they stay until its next start.
    ///
    /// # Errors
    ///
    /// Returns all that overlap.
    pub fn check_beside(&self, running: &MainConfig) -> Result<(), ConfigErrors> {
        let (locations, mut errors) = (self.read_from.locations(&self.sections), Vec::new());
        Judged { config: self, locations: &locations }.written_dirs(running, &mut errors);
        ConfigErrors::none_of(errors)
    }

    /// Checks ranges and parts as [`check`](Self::check) does. A missing part is a fault only if the configuration is
    /// `complete`.
    pub(super) fn check_parts(&self, complete: bool) -> Result<(), ConfigErrors> {
        let mut errors = check::values(self);
        let nowhere = ReadFrom::default().locations(&self.sections);
        check::parts(self, &nowhere, complete, &mut errors);
        ConfigErrors::none_of(errors)
    }

    /// Likely mistakes that are no errors: wanted contracts without a provider, required signatures of no key, restart
    /// delays too long for quarantine, queues that accept larger jobs than any reader takes, and peers with a proof but
    /// no socket, or with a socket but no proof.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let locations = self.read_from.locations(&self.sections);
        Judged { config: self, locations: &locations }.warnings()
    }

    /// Granted or hook directories and files of secrets that are absent on this machine now, or cannot be opened. This
    /// is no error: a file system may be mounted later, or the configuration may be for another machine.
    #[must_use]
    pub fn absent_paths(&self) -> Vec<ConfigError> {
        let locations = self.read_from.locations(&self.sections);
        Judged { config: self, locations: &locations }.absent_paths()
    }

    /// An error about the component of the extension with this index. It points at `path`, or at `sha256` if
    /// `pinned`.
    #[must_use]
    pub fn component_error(&self, extension: usize, pinned: bool, message: impl Into<String>) -> ConfigError {
        let id = self.extensions.get(extension).map(|extension| extension.id.to_string()).unwrap_or_default();
        let locations = self.read_from.locations(&self.sections);
        let key = if pinned { "sha256" } else { "path" };
        let location = locations.extensions.get(extension).and_then(|at| at.of(key));
        ConfigError::new(format!("extension[{id}].{key}"), message, location)
    }
}

/// Other crates' sections appear under the names of their tables.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { main, extensions, peers, queues, topics, sections, file, .. } = self;
        let mut debug = f.debug_struct("Config");
        debug.field("main", main).field("extensions", extensions).field("peers", peers);
        debug.field("queues", queues).field("topics", topics);
        for section in sections.all() {
            debug.field(section.table(), &section);
        }
        debug.field("file", file).finish()
    }
}

/// The file of a configuration, and the loader that read it.
#[derive(Clone)]
pub struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) loader: Loader,
}

impl ConfigFile {
    /// The absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again, with a loader that knows the same sections.
    ///
    /// # Errors
    ///
    /// The errors of [`Loader::load`].
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

/// Places of the parts that checks compare. Empty for a configuration made in Rust.
#[derive(Debug, Default)]
pub(super) struct Locations {
    pub(super) main: Places,
    pub(super) queues: BTreeMap<QueueName, Places>,
    pub(super) sections: SectionLocations,
    pub(super) extensions: Vec<Places>,
    pub(super) peers: Vec<Places>,
}

/// The places from reading a file. All are equal, so that configurations compare by content.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadFrom(Option<Arc<Locations>>);

impl ReadFrom {
    pub(super) fn new(locations: Locations) -> Self {
        Self(Some(Arc::new(locations)))
    }

    /// The places, or empty ones for a configuration made in Rust with these sections.
    pub(super) fn locations(&self, sections: &Sections) -> Arc<Locations> {
        let nowhere =
            || Locations { sections: SectionLocations::nowhere(sections), ..Locations::default() }.into();
        self.0.clone().unwrap_or_else(nowhere)
    }
}

impl PartialEq for ReadFrom {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

//! The keys of the operator's file. Only this module and its children ask for keys.
//!
//! A test compares them with `docs/configuration.md`.

mod channels;
mod extension;
mod grants;
mod peer;
mod queues;
mod shared;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
};

use weir_names::{ContractName, PeerName, QueueName, Topic};

pub(super) use self::queues::QueueDraft;
use self::{
    extension::extension,
    peer::peer,
    queues::{queue, topic},
};
use super::{
    AddressSpace, ArtifactTextError, Loader, MainConfig, PeerConfig, TopicConfig, TrustedKey,
    changes::LimitChanges,
    check::{Locations, PeerLocations},
    classes::{Class, class_name, own_class_name},
    error::{Location, quote},
    extension::ExtensionConfig,
    limits::{LIMIT_KEYS, TIMEOUT},
    main_config::{BLOCKING_THREADS, CACHE_SIZE, MEMORY_BUDGET, TRACE_ONE_IN, TRACE_SPANS},
    schema::Drafted,
    section::{Located, Section},
};

const CLASS: &str = "the name of a class";
const CONTRACT: &str = "a contract, as in `device.info@1`";
const QUEUE: &str = "the name of a queue";
const TOPIC: &str = "a topic pattern, as in `settings.changed.>`";
const HOST_DIR: &str = "the path of a directory";
const TRUSTED_KEY: &str = "a public key, as `weir keygen` shows it";

const ADDRESS_SPACE: &str = "`auto`, `large` or `small`";

/// Bytes of a socket's path without the closing NUL: `sun_path` of unix(7).
const SOCKET_PATH_MAX: usize = 107;

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) main: MainConfig,
    pub(super) include: Vec<Located<String>>,
    pub(super) classes: Vec<Class>,
    pub(super) queues: Vec<(Located<QueueName>, QueueDraft)>,
    pub(super) topics: Vec<(Located<Topic>, TopicConfig)>,
    pub(super) peers: Vec<(Located<PeerName>, (PeerConfig, PeerLocations))>,
    pub(super) sections: Vec<Box<dyn Drafted>>,
    pub(super) extensions: Vec<ExtensionDraft>,
    pub(super) locations: Locations,
}

#[derive(Debug)]
pub(super) struct ExtensionDraft {
    pub(super) config: ExtensionConfig,
    pub(super) class: Option<Located<String>>,
    pub(super) changes: LimitChanges,
}

impl Draft {
    pub(super) fn new(loader: &Loader) -> Self {
        Self { sections: loader.begin(), ..Self::default() }
    }

    pub(super) fn main_file(&mut self, file: &mut Section<'_, '_>) {
        self.include =
            file.texts("include", "a path in which `*` stands for any name, as in `conf.d/*.toml`", |text| {
                check_path(text).map(|_| text.to_owned())
            });
        file.table("main", |main| self.main(main));
        self.shared(file);
    }

    pub(super) fn included_file(&mut self, file: &mut Section<'_, '_>) {
        file.refuse("include", "belongs in the main file: an included file includes nothing itself");
        file.refuse("main", "belongs in the main file, not in one that it includes");
        self.shared(file);
    }

    fn main(&mut self, main: &mut Section<'_, '_>) {
        let config = &mut self.main;
        (config.serves, self.locations.serves) =
            split(main.texts("serves", CONTRACT, str::parse::<ContractName>));
        let dir = main.dir().to_owned();
        let socket = control_socket(main);
        let peer_socket = socket_path(main, "peer-socket");
        let plugin_dir = plain_path(main, "plugin-dir", HOST_DIR);
        self.locations.plugin_dir = plugin_dir.as_ref().map(|at| at.location.clone());
        config.plugin_dir = Some(plugin_dir.map_or(dir, Located::into_value));
        let cache_dir = plain_path(main, "cache-dir", HOST_DIR);
        (config.cache_dir, self.locations.cache_dir) = cache_dir.map(|at| (at.value, at.location)).unzip();
        let data_dir = plain_path(main, "data-dir", HOST_DIR);
        (config.data_dir, self.locations.data_dir) = data_dir.map(|at| (at.value, at.location)).unzip();
        if let Some(size) = main.number("cache-size", &CACHE_SIZE) {
            config.cache_size = size.value;
        }
        (config.trusted_keys, self.locations.trusted_keys) =
            split(main.texts("trusted-keys", TRUSTED_KEY, artifact_text::<TrustedKey>));
        if let Some(socket) = socket {
            config.control_socket = socket.value;
            self.locations.control_socket = Some(socket.location);
        }
        (config.peer_socket, self.locations.peer_socket) =
            peer_socket.map(|at| (at.value, at.location)).unzip();
        if let Some(budget) = main.number("memory-budget", &MEMORY_BUDGET) {
            config.memory_budget = Some(budget.value);
            self.locations.memory_budget = Some(budget.location);
        }
        if let Some(space) = main.text("address-space", ADDRESS_SPACE, str::parse::<AddressSpace>) {
            config.address_space = space.value;
        }
        if let Some(timeout) = main.time("request-timeout", TIMEOUT) {
            config.request_timeout = timeout.value;
        }
        if let Some(one_in) = main.count("trace-one-in", TRACE_ONE_IN) {
            config.trace_one_in = one_in.value;
        }
        if let Some(spans) = main.count("trace-spans", TRACE_SPANS) {
            config.trace_spans = spans.value;
        }
        if let Some(threads) = main.count("blocking-threads", BLOCKING_THREADS) {
            config.blocking_threads = threads.value;
        }
    }

    /// Reads the tables of any file.
    fn shared(&mut self, file: &mut Section<'_, '_>) {
        file.named("limits", |class, name| {
            let inherits = class.text("inherits", CLASS, class_name);
            let changes = changes(class);
            let name = named(class, "limits", &name, own_class_name);
            self.classes.extend(name.map(|name| Class { name, inherits, changes }));
        });
        file.named("queue", |section, name| self.queues.extend(queue(section, &name)));
        file.named("topic", |section, name| self.topics.extend(topic(section, &name)));
        file.named("peer", |section, name| self.peers.extend(peer(section, &name)));
        self.sections.iter_mut().for_each(|section| section.read(file));
        let plugin_dir = self.main.plugin_dir.clone().unwrap_or_default();
        file.tables("extension", |section| {
            if let Some((draft, locations)) = extension(section, &plugin_dir) {
                self.extensions.push(draft);
                self.locations.extensions.push(locations);
            }
        });
    }
}

pub(super) fn control_socket(main: &mut Section<'_, '_>) -> Option<Located<PathBuf>> {
    socket_path(main, "control-socket")
}

fn socket_path(main: &mut Section<'_, '_>, key: &'static str) -> Option<Located<PathBuf>> {
    let dir = main.dir().to_owned();
    main.text(key, "the path of a socket, of at most 107 bytes", |text| socket_in(&dir, text))
}

/// The path of a socket, relative to `dir`.
///
/// # Errors
///
/// Fails if it is empty, contains a NUL, or has more than 107 bytes.
pub fn socket_in(dir: &Path, text: &str) -> Result<PathBuf, String> {
    let path = dir.join(check_path(text)?);
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        return Err(format!("{} has {length} bytes, but a socket's path at most 107", quote(text)));
    }
    Ok(path)
}

fn changes(section: &mut Section<'_, '_>) -> LimitChanges {
    let errors = section.error_count();
    let mut changes = LimitChanges::default();
    for key in &LIMIT_KEYS {
        if !key.name.contains('.') {
            changes.add(key, section.number(key.name, &key.shape));
        }
    }
    for table in ["inbox", "http"] {
        section.table(table, |section| {
            for key in &LIMIT_KEYS {
                if let Some((of, name)) = key.name.split_once('.')
                    && of == table
                {
                    changes.add(key, section.number(name, &key.shape));
                }
            }
        });
    }
    changes.incomplete = section.error_count() > errors;
    changes
}

/// The name of a table of `[table.NAME]`. `None` after reporting a faulty one.
fn named<N, E: Display>(
    section: &mut Section<'_, '_>,
    table: &str,
    name: &Located<&str>,
    parse: impl Fn(&str) -> Result<N, E>,
) -> Option<Located<N>> {
    match parse(name.value) {
        Ok(value) => Some(Located { value, location: name.location.clone() }),
        Err(error) => {
            section.error(table, format!("in `{table}`: {error}"), name.location.clone());
            None
        }
    }
}

fn plain_path(
    section: &mut Section<'_, '_>,
    key: &'static str,
    what: &'static str,
) -> Option<Located<PathBuf>> {
    let dir = section.dir().to_owned();
    section.text(key, what, |text| check_path(text).map(|path| dir.join(path)))
}

fn artifact_text<T: FromStr<Err = ArtifactTextError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{} is {error}", quote(text)))
}

fn check_path(text: &str) -> Result<&Path, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{} is not a path: it is empty or contains a NUL", quote(text)));
    }
    Ok(Path::new(text))
}

fn split<T>(items: Vec<Located<T>>) -> (Vec<T>, Vec<Location>) {
    items.into_iter().map(|item| (item.value, item.location)).unzip()
}

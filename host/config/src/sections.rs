//! The tables of the operator's file, and what their keys share.

use std::{
    collections::BTreeMap,
    fmt::Display,
    mem,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use weir_names::{ExtensionId, PeerName, QueueName, Topic, TopicPattern};

use super::{
    ArtifactTextError, Limits, Loader, MainConfig, PeerConfig, QueueConfig, TopicConfig,
    classes::{Class, Classes, LimitChanges, class_name, own_class_name},
    config::Locations,
    error::{ConfigError, Location, quote},
    extension::ExtensionConfig,
    key::{Places, Table},
    limits::CLASS,
    loader::not_in_this_build,
    schema::Drafted,
    section::{Located, Section, child},
    stanza::{self, Stanza},
};

pub(super) const CONTRACT: &str = "a contract, as in `device.info@1`";
pub(super) const QUEUE: &str = "the name of a queue";
pub(super) const TOPIC: &str = "a topic pattern, as in `settings.changed.>`";
pub(super) const HOST_DIR: &str = "the path of a directory";
pub(super) const SOCKET: &str = "the path of a socket, of at most 107 bytes";

const INCLUDE: &str = "Files that are read as if they stood below this one: in the order of the list, then by name, each once, at \
    most 64. They may hold `[limits.NAME]`, `[queue.NAME]`, `[store.NAME]`, `[topic.\"NAME\"]`, \
    `[peer.\"NAME\"]`, `[gateway]`, `[hooks.NAME]` and `[[extension]]`, but not `include` or `[main]`. At most \
    64 paths, each with a `*` in at most two of its names, and none with `**`. `*` does not match a name with a \
    leading dot. A path without `*`, `?` and `[` must exist.";

/// Bytes of a socket's path without the closing NUL: `sun_path` of unix(7).
const SOCKET_PATH_MAX: usize = 107;

/// Tables with names that the operator chooses, and their places.
pub(super) type Named<N, T> = Vec<(Located<N>, (T, Places))>;

/// What was read of all files so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) main: MainConfig,
    pub(super) include: Vec<Located<String>>,
    pub(super) classes: Vec<Class>,
    /// The tables of the classes, as text.
    pub(super) class_texts: String,
    pub(super) queues: Named<QueueName, QueueConfig>,
    pub(super) topics: Named<Topic, TopicConfig>,
    pub(super) peers: Named<PeerName, PeerConfig>,
    pub(super) sections: Vec<Box<dyn Drafted>>,
    lacking: Vec<(&'static str, &'static str)>,
    pub(super) extensions: Vec<ExtensionConfig>,
    pub(super) locations: Locations,
}

impl Draft {
    pub(super) fn new(loader: &Loader) -> Self {
        Self {
            sections: loader.sections.iter().map(|section| (section.begin)()).collect(),
            lacking: loader.lacking.clone(),
            ..Self::default()
        }
    }

    pub(super) fn main_file(&mut self, file: &mut Section<'_, '_>) {
        file.about(INCLUDE, || "none");
        self.include =
            file.texts("include", "a path in which `*` stands for any name, as in `conf.d/*.toml`", |text| {
                check_path(text).map(|_| text.to_owned())
            });
        self.main.plugin_dir = Some(file.dir().to_owned());
        file.about("Main itself: [below](#main).", || "");
        self.locations.main = file.table("main", |main| main.keys(&mut self.main));
        self.shared(file);
    }

    pub(super) fn included_file(&mut self, file: &mut Section<'_, '_>) {
        file.refuse("include", "belongs in the main file: an included file includes nothing itself");
        file.refuse("main", "belongs in the main file, not in one that it includes");
        self.shared(file);
    }

    /// Reads the tables that both the main file and included files may have.
    pub(super) fn shared(&mut self, file: &mut Section<'_, '_>) {
        file.about("Classes of limits: [below](#limitsname-classes-of-limits).", || "");
        file.named("limits", |class, name| {
            class.about(
                "The class for the limits that are not set here. Classes cannot inherit in a circle.",
                || "`\"medium\"`",
            );
            let inherits = class.text("inherits", CLASS, class_name);
            let mut limits = Limits::default();
            let places = class.keys(&mut limits);
            let changes = LimitChanges::of(&limits, &places);
            self.class_texts.push_str(&stanza::class(name.value, class.raw()));
            let name = class.name("limits", &name, own_class_name);
            self.classes.extend(name.map(|name| Class { name, inherits, changes }));
        });
        file.about("Shared queues: [below](#queuename).", || "");
        self.queues.extend(file.named_tables("queue", None, str::parse, || Some(QueueConfig::default())));
        file.about("Topics with a last event that Main keeps: [below](#topicname).", || "");
        let help = "a topic with dots needs quotes, as in `[topic.\"settings.changed\"]`";
        self.topics.extend(file.named_tables(
            "topic",
            Some(help),
            one_topic,
            || Some(TopicConfig::default()),
        ));
        file.about("Programs outside Main that may connect to it: [below](#peername).", || "");
        let help = "the name of a peer needs quotes, as in `[peer.\"app:player\"]`";
        let blank = || Some(PeerConfig::new("app:blank".parse().ok()?));
        let mut peers = file.named_tables("peer", Some(help), peer_name, blank);
        peers.iter_mut().for_each(|(name, (peer, _))| peer.name.clone_from(&name.value));
        self.peers.append(&mut peers);
        self.lacking.iter().for_each(|(table, feature)| file.refuse(table, &not_in_this_build(feature)));
        self.sections.iter_mut().for_each(|section| section.read(file));
        file.about("The extensions, each under a header `[[extension]]`: [below](#extension).", || "none");
        file.tables("extension", |section| {
            let Ok(blank) = "blank".parse::<ExtensionId>() else { return };
            let mut extension = ExtensionConfig::new(blank, "");
            extension.plugin_dir.clone_from(&self.main.plugin_dir);
            let places = section.keys(&mut extension);
            if !places.is_incomplete {
                let plugin_dir = extension.plugin_dir.take();
                let stanza =
                    || Stanza::of_extension(section.raw(), section.dir(), plugin_dir.as_deref()).into();
                extension.stanza = extension.update.is_some().then(stanza);
                self.extensions.push(extension);
                self.locations.extensions.push(places);
            }
        });
    }

    /// The extensions, with the limits of their classes and with their stanzas.
    pub(super) fn settled_extensions(
        &mut self,
        classes: &Classes,
        errors: &mut Vec<ConfigError>,
    ) -> Vec<ExtensionConfig> {
        let class_texts: Arc<str> = mem::take(&mut self.class_texts).into();
        let extensions = mem::take(&mut self.extensions).into_iter().zip(&self.locations.extensions);
        let settled = extensions.map(|(config, places)| {
            let path = format!("extension[{}]", config.id);
            let limits = classes.limits(&config.limits, places, &path, errors);
            let stanza = config.stanza.as_ref().and_then(|stanza| stanza.with_classes(&class_texts));
            ExtensionConfig { limits, stanza, ..config }
        });
        settled.collect()
    }
}

impl Section<'_, '_> {
    /// Reads the keys of tables with names that the operator chooses and `parse` understands. `blank` makes the values
    /// that a table starts from. `help` explains an unknown table in such a table. Tables with a faulty name, or
    /// without a key that must be there, are left out.
    pub fn named_tables<N, T: Table, E: Display>(
        &mut self,
        table: &'static str,
        help: Option<&'static str>,
        parse: fn(&str) -> Result<N, E>,
        blank: fn() -> Option<T>,
    ) -> Vec<(Located<N>, (T, Places))> {
        let mut found = Vec::new();
        self.named(table, |section, name| {
            help.into_iter().for_each(|help| section.explain_tables(help));
            let Some(mut values) = blank() else { return };
            let places = section.keys(&mut values);
            let name = section.name(table, &name, parse);
            found.extend(name.filter(|_| !places.is_incomplete).map(|name| {
                let places = places.named_at(name.location.clone());
                (name, (values, places))
            }));
        });
        found
    }

    /// Reads the keys of a table that one of the files may have. `None` if this file does not have it.
    pub fn one_table<T: Table + Default>(&mut self, table: &'static str) -> Option<(T, Places)> {
        self.optional_table(table, |section| {
            let mut values = T::default();
            let places = section.keys(&mut values);
            (values, places)
        })
    }

    /// Reads a path and makes it absolute from the file's directory. `what` describes it.
    pub fn path(&mut self, key: &'static str, what: &'static str) -> Option<Located<PathBuf>> {
        let dir = self.dir().to_owned();
        self.text(key, what, |text| check_path(text).map(|path| dir.join(path)))
    }

    /// The name of a table of `[table.NAME]`. `None` after reporting a faulty one.
    pub fn name<N, E: Display>(
        &mut self,
        table: &str,
        name: &Located<&str>,
        parse: impl Fn(&str) -> Result<N, E>,
    ) -> Option<Located<N>> {
        match parse(name.value) {
            Ok(value) => Some(Located { value, location: name.location.clone() }),
            Err(error) => {
                self.error(table, format!("in `{table}`: {error}"), name.location.clone());
                None
            }
        }
    }
}

/// The path of a socket in a text. A relative one starts at `dir`.
///
/// # Errors
///
/// Fails if the text is empty or contains a NUL, or if the path has more than 107 bytes.
pub fn socket_in(dir: &Path, text: &str) -> Result<PathBuf, String> {
    let path = dir.join(check_path(text)?);
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        return Err(format!("{} has {length} bytes, but a socket's path at most 107", quote(text)));
    }
    Ok(path)
}

/// Reads a hash or a key of an artifact.
pub(super) fn artifact_text<T: FromStr<Err = ArtifactTextError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{} is {error}", quote(text)))
}

/// Refuses a text that no path can be: an empty one, or one with a NUL.
pub(super) fn check_path(text: &str) -> Result<&Path, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{} is not a path: it is empty or contains a NUL", quote(text)));
    }
    Ok(Path::new(text))
}

fn peer_name(text: &str) -> Result<PeerName, String> {
    text.parse::<PeerName>().map_err(|error| {
        let needs_quotes = !text.contains(':');
        let help =
            if needs_quotes { "; a header has it in quotes, as in `[peer.\"app:player\"]`" } else { "" };
        format!("{error}{help}")
    })
}

fn one_topic(text: &str) -> Result<Topic, String> {
    text.parse::<Topic>().map_err(|error| match text.parse::<TopicPattern>() {
        Ok(_) => format!(
            "{} stands for many topics, and a retained topic is one: give each a table of its own",
            quote(text)
        ),
        Err(_) => error.to_string(),
    })
}

/// The tables of `[table.NAME]` by name, with the places of their names. Keeps the first of two with one name, and
/// reports the second.
pub(super) fn by_name<N: Clone + Display + Ord, T>(
    table: &str,
    found: Vec<(Located<N>, T)>,
    errors: &mut Vec<ConfigError>,
) -> BTreeMap<N, (Location, T)> {
    let mut kept: BTreeMap<N, (Location, T)> = BTreeMap::new();
    for (name, item) in found {
        match kept.get(&name.value) {
            Some((first, _)) => {
                let path = child(table, &name.value.to_string());
                let message = format!("`{path}` is defined in two files");
                let error = ConfigError::new(path, message, Some(name.location));
                errors.push(error.note(Some(first.clone()), "first defined here"));
            }
            None => drop(kept.insert(name.value, (name.location, item))),
        }
    }
    kept
}

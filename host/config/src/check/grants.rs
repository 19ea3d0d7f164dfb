//! Checks granted directories of extensions and other crates' sections.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Judged,
    paths::{resolved, shown},
    repeated,
};
use crate::{
    DirGrant, DirMode, MainConfig, SecretSource, StoreGrant,
    error::{ConfigError, Location},
    key::Places,
    schema::ProtectedDir,
    section::child,
};

/// The directories and stores that a table grants.
#[derive(Clone, Debug)]
pub struct Granted<'c> {
    /// The path of the table.
    pub path: String,
    /// The directories.
    pub dirs: &'c [DirGrant],
    /// The stores.
    pub stores: &'c [StoreGrant],
    /// The places of the table `grants` in a file.
    pub places: Option<&'c Places>,
}

/// Checks grants outside a configuration, against `protected`.
#[must_use]
pub fn check_grants(granted: &Granted<'_>, protected: Vec<ProtectedDir>) -> Vec<ConfigError> {
    let mut errors: Vec<ConfigError> = granted.over_protected(&ProtectedDirs::new(protected)).collect();
    errors.extend(granted.doubled_guests());
    errors
}

/// Resolved directories that must not be granted for writing, without nested ones. So a directory that overlaps with a
/// path is next to that path in the map, and a lookup need not compare all.
struct ProtectedDirs(BTreeMap<PathBuf, ProtectedDir>);

impl<'c> Judged<'c> {
    /// Refuses grants to write to the cache, whose code runs outside the sandbox, to `main.data-dir` and
    /// `main.state-dir`, and to directories that other crates protect.
    pub(in super::super) fn written_dirs(&self, main: &MainConfig, errors: &mut Vec<ConfigError>) {
        let sections = self.config.sections.all();
        let protected = sections.flat_map(|section| section.protected(&self.locations.sections));
        let protected = protected.chain(self.data_dir(main)).chain(self.state_dir(main));
        let protected = ProtectedDirs::new(protected);
        let cache = main.cache_dir.clone().map(|dir| ProtectedDir {
            key: "main.cache-dir".to_owned(),
            dir,
            location: None,
            why: "a guest that writes there can leave the sandbox",
            note: "",
        });
        let cache = ProtectedDirs::new(cache);
        for granted in self.granted() {
            errors.extend(granted.over_protected(&cache));
            errors.extend(granted.over_protected(&protected));
        }
    }

    pub(crate) fn absent_paths(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for granted in self.granted() {
            let key = format!("{}.grants.dirs.host", granted.path);
            let dirs = granted.dirs.iter().enumerate();
            errors.extend(
                dirs.filter_map(|(item, dir)| absent(&key, &dir.host, granted.place_of_dir(item, "host"))),
            );
        }
        let protected = self.config.sections.all();
        let protected = protected.flat_map(|section| section.protected(&self.locations.sections));
        errors.extend(protected.filter_map(|dir| absent(&dir.key, &dir.dir, dir.location)));
        for (index, extension) in self.extensions() {
            let socket = extension.serves_http.as_ref().and_then(|http| http.socket.as_deref());
            // Main does not make it: whoever makes it says who may open the socket.
            errors.extend(socket.and_then(Path::parent).and_then(|dir| {
                let key = format!("extension[{}].serves-http.socket", extension.id);
                absent(&key, dir, self.place_in_mount(index, "socket"))
            }));
            for (name, source) in &extension.secrets {
                let SecretSource::File(path) = source else { continue };
                let Err(error) = path.metadata() else { continue };
                let key = child(&format!("extension[{}].config", extension.id), name);
                let message = format!("in `{key}`: {} cannot be opened: {error}", shown(path));
                errors.push(ConfigError::new(key, message, self.place(index, "id")));
            }
        }
        errors
    }

    /// `main.data-dir`, if it is set: only Main may write the files of stores.
    fn data_dir(&self, main: &MainConfig) -> Option<ProtectedDir> {
        Some(ProtectedDir {
            key: "main.data-dir".to_owned(),
            dir: main.data_dir.clone()?,
            location: self.locations.main.of("data-dir"),
            why: "a guest that writes there can change the stores of others",
            note: "the directory of stores is set here",
        })
    }

    /// `main.state-dir`, if it is set: only Main may say which versions are proven, and what they are granted.
    fn state_dir(&self, main: &MainConfig) -> Option<ProtectedDir> {
        Some(ProtectedDir {
            key: "main.state-dir".to_owned(),
            dir: main.state_dir.clone()?,
            location: self.locations.main.of("state-dir"),
            why: "a guest that writes there can change the versions and grants of others",
            note: "the directory of versions is set here",
        })
    }

    /// Reports directories that a guest would find at one path.
    pub(super) fn guest_dirs(&self, errors: &mut Vec<ConfigError>) {
        self.granted().for_each(|granted| errors.extend(granted.doubled_guests()));
    }

    /// What extensions and other crates' sections grant.
    pub fn granted(&self) -> impl Iterator<Item = Granted<'c>> {
        let Judged { config, locations } = *self;
        let extensions = config.extensions.iter().enumerate().map(|(index, extension)| Granted {
            path: format!("extension[{}]", extension.id),
            dirs: &extension.grants.dirs,
            stores: &extension.grants.stores,
            places: locations.extensions.get(index).and_then(|at| at.within("grants")),
        });
        let sections = config.sections.all();
        extensions.chain(sections.flat_map(|section| section.granted(&locations.sections)))
    }
}

impl Granted<'_> {
    /// Errors for two directories that are granted as one path.
    fn doubled_guests(&self) -> impl Iterator<Item = ConfigError> {
        let guests = self.dirs.iter().enumerate().map(|(item, dir)| (&dir.guest, (item, &dir.guest)));
        repeated(guests).map(|((first, _), (item, guest))| {
            let location = |item| self.place_of_dir(item, "guest");
            let key = format!("{}.grants.dirs.guest", self.path);
            let message = format!("in `{key}`: two directories are granted as `{guest}`");
            ConfigError::new(key, message, location(item)).note(location(first), "the first is here")
        })
    }

    /// Errors for directories that are granted for writing and overlap with a protected one.
    fn over_protected(&self, protected: &ProtectedDirs) -> impl Iterator<Item = ConfigError> {
        let written = self.dirs.iter().enumerate().filter(|(_, dir)| dir.mode == DirMode::Rw);
        let overlapping = written.filter_map(|(item, dir)| Some((item, dir, protected.next_to(&dir.host)?)));
        overlapping.map(|(item, dir, other)| {
            let key = format!("{}.grants.dirs.host", self.path);
            let message = format!(
                "in `{key}`: {} is granted for writing and overlaps with `{}`, {}: {}",
                shown(&dir.host),
                other.key,
                shown(&other.dir),
                other.why
            );
            let error = ConfigError::new(key, message, self.place_of_dir(item, "host"));
            error.note(other.location.clone(), other.note)
        })
    }

    fn place_of_dir(&self, item: usize, key: &str) -> Option<Location> {
        self.places?.item("dirs", item)?.of(key)
    }

    /// The place of an item of `grants.stores`, from 0.
    #[must_use]
    pub fn place_of_store(&self, item: usize) -> Option<Location> {
        self.places?.of_item("stores", item)
    }
}

/// The error for a path that is not a directory, or cannot be opened.
fn absent(key: &str, dir: &Path, location: Option<Location>) -> Option<ConfigError> {
    let fault = match dir.metadata() {
        Ok(found) if found.is_dir() => return None,
        Ok(_) => "is not a directory".to_owned(),
        Err(error) => format!("cannot be opened: {error}"),
    };
    Some(ConfigError::new(key, format!("in `{key}`: {} {fault}", shown(dir)), location))
}

impl ProtectedDirs {
    fn new(dirs: impl IntoIterator<Item = ProtectedDir>) -> Self {
        let sorted: BTreeMap<PathBuf, _> = dirs.into_iter().map(|at| (resolved(&at.dir), at)).collect();
        let mut outermost: BTreeMap<PathBuf, _> = BTreeMap::new();
        for (dir, at) in sorted {
            if !outermost.last_key_value().is_some_and(|(last, _)| dir.starts_with(last)) {
                outermost.insert(dir, at);
            }
        }
        Self(outermost)
    }

    /// A protected directory that contains the path or is inside it.
    fn next_to(&self, path: &Path) -> Option<&ProtectedDir> {
        let path = resolved(path);
        let around =
            self.0.range::<PathBuf, _>(..=&path).next_back().filter(|(dir, _)| path.starts_with(dir));
        let inside = || self.0.range::<PathBuf, _>(&path..).next().filter(|(dir, _)| dir.starts_with(&path));
        around.or_else(inside).map(|(_, at)| at)
    }
}

//! Sections of other crates in the operator's file: the trait for them, and their storage in a
//! [`Config`](super::Config).
//!
//! Knows no section; of hooks it knows only the names in extensions.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt::{Debug, Display},
    path::PathBuf,
};

use weir_names::ContractName;

use super::{
    Limits,
    check::{Granted, Judged},
    classes::Classes,
    differences::Facts,
    error::{ConfigError, Location},
    key::Places,
    section::{Located, Section},
    sections::by_name,
};

/// A table of the operator's file that another crate defines. [`Config::section`](super::Config::section) returns the
/// type.
///
/// A [`Loader`](super::Loader) with the section registered reads, checks and reports it like any other table.
pub trait ConfigSection: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The top-level key of the table.
    const TABLE: &'static str;

    /// The section's name in messages about the memory budget, as in `the hooks`.
    const IN_BUDGET: &'static str = Self::TABLE;

    /// Whether a change takes effect only when Main is started anew. Then a reload keeps the section and says so.
    const NEEDS_RESTART: bool = false;

    /// What the section is for, in Markdown, and its default.
    const ABOUT: (&'static str, &'static str) = ("", "");

    /// The parsed files with locations.
    type Draft: Debug + Default + 'static;

    /// Places of values that are checked together with others. Empty for a configuration made in Rust.
    type Locations: Debug + Default + Send + Sync + 'static;

    /// Reads the table in a file, with [`Section::table`] or [`Section::named`] of the top level `file`. The main file
    /// comes first.
    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>);

    /// Makes the values from all files, once the classes of limits are known.
    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations);

    /// Whether the section is empty, as if no file had it.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Faulty values of a configuration made in Rust. Files are checked as they are read.
    fn check_values(&self) -> Vec<ConfigError> {
        Vec::new()
    }

    /// Adds errors for contradictions between the section's values, and between them and the rest of the configuration.
    fn check(&self, _judged: &Judged<'_>, _at: &Self::Locations, _errors: &mut Vec<ConfigError>) {}

    /// Adds errors for names that the rest of the configuration uses and this section lacks. Skipped if files have
    /// other errors, because a faulty part may define the names.
    fn check_names(&self, _judged: &Judged<'_>, _at: &Self::Locations, _errors: &mut Vec<ConfigError>) {}

    /// Memory that counts against `main.memory-budget`.
    fn memory(&self, _at: &Self::Locations) -> Vec<MemoryUse> {
        Vec::new()
    }

    /// Host directories that must not be granted for writing.
    fn protected(&self, _at: &Self::Locations) -> Vec<ProtectedDir> {
        Vec::new()
    }

    /// Host directories and stores that the section grants.
    fn granted<'c>(&'c self, _at: &'c Self::Locations) -> Vec<Granted<'c>> {
        Vec::new()
    }

    /// Whether peers can connect because of the section, without `main.peer-socket`.
    fn lets_peers_in(&self) -> bool {
        false
    }

    /// Contracts that Main serves because of the section, even if no file has it.
    fn serves() -> Vec<ContractName> {
        Vec::new()
    }

    /// The values of its tables by key, as in `hooks.nodes` with `timeout`. A plan and the log of a reload name the
    /// keys that differ. Without this, they name only the section.
    fn facts(&self) -> BTreeMap<String, Facts> {
        BTreeMap::new()
    }
}

/// A part of a section's memory.
#[derive(Clone, Debug)]
pub struct MemoryUse {
    /// The part with a verb, as in ``hooks `a` come``.
    pub what: String,
    /// Its place in a file.
    pub location: Option<Location>,
    /// Its size in bytes.
    pub bytes: u64,
    /// The factors of its size.
    pub factors: String,
}

/// A host directory that must not be granted for writing.
#[derive(Clone, Debug)]
pub struct ProtectedDir {
    /// The key that sets the directory.
    pub key: String,
    /// The directory.
    pub dir: PathBuf,
    /// The place of the key.
    pub location: Option<Location>,
    /// The reason, which follows a colon.
    pub why: &'static str,
    /// The note that points at the place of the key.
    pub note: &'static str,
}

/// What a section may use while it makes values.
#[derive(Debug)]
pub struct Settling<'c> {
    pub(super) classes: &'c Classes,
    pub(super) errors: &'c mut Vec<ConfigError>,
}

impl Settling<'_> {
    /// The tables of `[table.NAME]` by name, with the places of their names. Reports repeated names and keeps the
    /// first.
    pub fn by_name<N: Clone + Display + Ord, T>(
        &mut self,
        table: &str,
        found: Vec<(Located<N>, T)>,
    ) -> BTreeMap<N, (Location, T)> {
        by_name(table, found, self.errors)
    }

    /// The only table, of several files. Reports a second one.
    pub fn only_one<T>(&mut self, table: &str, found: Vec<(T, Places)>) -> Option<(T, Places)> {
        let mut tables = found.into_iter();
        let first = tables.next();
        let first_at = first.as_ref().and_then(|(_, places)| places.here());
        for (_, second) in tables {
            let error = ConfigError::new(table, format!("`{table}` is defined in two files"), second.here());
            self.error(error.note(first_at.clone(), "first defined here"));
        }
        first
    }

    /// The limits of a table at `path` that [`limits_of_hooks`](crate::extend::kind::limits_of_hooks) has read: those
    /// of its `class`, or of the default class, with those that it sets. Reports an unknown class.
    pub fn limits(&mut self, set: &Limits, places: &Places, path: &str) -> Limits {
        self.classes.limits_without_messages(set, places, path, self.errors)
    }

    /// Reports a fault after all files are read.
    pub fn error(&mut self, error: ConfigError) {
        self.errors.push(error);
    }
}

/// Other crates' sections in a configuration, by table.
#[derive(Debug, Default)]
pub(super) struct Sections(BTreeMap<&'static str, Box<dyn Held>>);

impl Sections {
    pub(super) fn get<S: ConfigSection>(&self) -> Option<&S> {
        (&**self.0.get(S::TABLE)? as &dyn Any).downcast_ref()
    }

    pub(super) fn set<S: ConfigSection>(&mut self, section: S) {
        self.0.insert(S::TABLE, Box::new(section));
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &dyn Held> {
        self.0.values().map(|held| &**held)
    }

    /// The names of the tables that either configuration has.
    pub(super) fn names(&self, other: &Self) -> BTreeSet<&'static str> {
        self.0.keys().chain(other.0.keys()).copied().collect()
    }

    /// Whether a table differs. A missing one equals an empty one.
    pub(super) fn differs(&self, other: &Self, table: &str) -> bool {
        match (self.0.get(table), other.0.get(table)) {
            (Some(one), Some(other)) => !one.is_same(&**other),
            (Some(only), None) | (None, Some(only)) => !only.is_empty(),
            (None, None) => false,
        }
    }

    /// What a section says of its values.
    pub(super) fn facts(&self, table: &str) -> BTreeMap<String, Facts> {
        self.0.get(table).map(|held| held.facts()).unwrap_or_default()
    }

    /// Whether a change of the table takes effect only when Main is started anew.
    pub(super) fn needs_restart(&self, table: &str) -> bool {
        self.0.get(table).is_some_and(|held| held.needs_restart())
    }

    /// Replaces the sections that only a new start changes with those of `running`. A section that `running` lacks
    /// stays.
    pub(super) fn keep(&mut self, running: &Self) {
        for (table, held) in running.0.iter().filter(|(_, held)| held.needs_restart()) {
            self.0.insert(table, held.boxed());
        }
    }
}

impl Clone for Sections {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|(table, held)| (*table, held.boxed())).collect())
    }
}

impl PartialEq for Sections {
    fn eq(&self, other: &Self) -> bool {
        self.names(other).into_iter().all(|table| !self.differs(other, table))
    }
}

/// A [`ConfigSection`] whose type is not known: see there for what each function returns.
pub(super) trait Held: Any + Debug + Send + Sync {
    fn table(&self) -> &'static str;
    fn in_budget(&self) -> &'static str;
    fn needs_restart(&self) -> bool;
    fn lets_peers_in(&self) -> bool;
    /// A copy.
    fn boxed(&self) -> Box<dyn Held>;
    fn is_same(&self, other: &dyn Held) -> bool;
    fn is_empty(&self) -> bool;
    fn check_values(&self) -> Vec<ConfigError>;
    fn check(&self, judged: &Judged<'_>, errors: &mut Vec<ConfigError>);
    fn check_names(&self, judged: &Judged<'_>, errors: &mut Vec<ConfigError>);
    fn memory(&self, at: &SectionLocations) -> Vec<MemoryUse>;
    fn protected(&self, at: &SectionLocations) -> Vec<ProtectedDir>;
    fn granted<'c>(&'c self, at: &'c SectionLocations) -> Vec<Granted<'c>>;
    fn serves(&self) -> Vec<ContractName>;
    fn facts(&self) -> BTreeMap<String, Facts>;
    /// The places of a section made in Rust, which are empty.
    fn nowhere(&self) -> Box<dyn Any + Send + Sync>;
}

impl<S: ConfigSection> Held for S {
    fn table(&self) -> &'static str {
        S::TABLE
    }

    fn in_budget(&self) -> &'static str {
        S::IN_BUDGET
    }

    fn needs_restart(&self) -> bool {
        S::NEEDS_RESTART
    }

    fn lets_peers_in(&self) -> bool {
        ConfigSection::lets_peers_in(self)
    }

    fn boxed(&self) -> Box<dyn Held> {
        Box::new(self.clone())
    }

    fn is_same(&self, other: &dyn Held) -> bool {
        (other as &dyn Any).downcast_ref::<S>() == Some(self)
    }

    fn is_empty(&self) -> bool {
        ConfigSection::is_empty(self)
    }

    fn check_values(&self) -> Vec<ConfigError> {
        ConfigSection::check_values(self)
    }

    fn check(&self, judged: &Judged<'_>, errors: &mut Vec<ConfigError>) {
        if let Some(at) = judged.locations.sections.get::<S>() {
            ConfigSection::check(self, judged, at, errors);
        }
    }

    fn check_names(&self, judged: &Judged<'_>, errors: &mut Vec<ConfigError>) {
        if let Some(at) = judged.locations.sections.get::<S>() {
            ConfigSection::check_names(self, judged, at, errors);
        }
    }

    fn memory(&self, at: &SectionLocations) -> Vec<MemoryUse> {
        at.get::<S>().map(|at| ConfigSection::memory(self, at)).unwrap_or_default()
    }

    fn protected(&self, at: &SectionLocations) -> Vec<ProtectedDir> {
        at.get::<S>().map(|at| ConfigSection::protected(self, at)).unwrap_or_default()
    }

    fn granted<'c>(&'c self, at: &'c SectionLocations) -> Vec<Granted<'c>> {
        at.get::<S>().map(|at| ConfigSection::granted(self, at)).unwrap_or_default()
    }

    fn serves(&self) -> Vec<ContractName> {
        S::serves()
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        ConfigSection::facts(self)
    }

    fn nowhere(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(S::Locations::default())
    }
}

/// The places of sections' values in the files, by table.
#[derive(Debug, Default)]
pub(super) struct SectionLocations(BTreeMap<&'static str, Box<dyn Any + Send + Sync>>);

impl SectionLocations {
    /// The places of sections made in Rust, which are empty.
    pub(super) fn nowhere(sections: &Sections) -> Self {
        Self(sections.all().map(|held| (held.table(), held.nowhere())).collect())
    }

    fn get<S: ConfigSection>(&self) -> Option<&S::Locations> {
        self.0.get(S::TABLE)?.downcast_ref()
    }
}

/// A section that a loader knows.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) table: &'static str,
    pub(super) begin: fn() -> Box<dyn Drafted>,
}

impl Registered {
    pub(super) fn of<S: ConfigSection>() -> Self {
        Self { table: S::TABLE, begin: || Box::new(DraftOf::<S>(S::Draft::default())) }
    }
}

/// The [`Draft`](ConfigSection::Draft) of a section whose type is not known.
pub(super) trait Drafted: Debug {
    fn read(&mut self, file: &mut Section<'_, '_>);
    fn settle(
        self: Box<Self>,
        settling: &mut Settling<'_>,
        sections: &mut Sections,
        locations: &mut SectionLocations,
    );
}

#[derive(Debug)]
struct DraftOf<S: ConfigSection>(S::Draft);

impl<S: ConfigSection> Drafted for DraftOf<S> {
    fn read(&mut self, file: &mut Section<'_, '_>) {
        let (meaning, default) = S::ABOUT;
        file.about(meaning, || default.to_owned());
        S::read(&mut self.0, file);
    }

    fn settle(
        self: Box<Self>,
        settling: &mut Settling<'_>,
        sections: &mut Sections,
        locations: &mut SectionLocations,
    ) {
        let (section, at) = S::settle(self.0, settling);
        sections.set(section);
        locations.0.insert(S::TABLE, Box::new(at));
    }
}

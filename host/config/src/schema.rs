//! Sections that other crates bring to the operator's file: what such a crate says of one, and how a
//! [`Config`] holds what was read.
//!
//! Knows no section: of hooks, only where extensions name them.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Debug, Display},
    marker::PhantomData,
    path::PathBuf,
};

use weir_names::ContractName;

use super::{
    Config, Limits,
    changes::LimitChanges,
    check::{Granted, Parts},
    classes::Classes,
    error::{ConfigError, Location},
    named::by_name,
    section::{Located, Section},
};

/// A table of the operator's file that a crate beside this one brings. The type is what a [`Config`] holds
/// of it: [`Config::section`] gives it back.
///
/// A [`Loader`](super::Loader) that has it registered reads, checks and reports it as every other table.
pub trait ConfigSection: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The key of the table at the top level of a file.
    const TABLE: &'static str;

    /// How a message about the memory budget names what the section counts against it, as in `the hooks`.
    const IN_BUDGET: &'static str = Self::TABLE;

    /// What was read of the files, with its locations.
    type Draft: Debug + Default + 'static;

    /// Where the values stand that are judged together with others; empty for a configuration made in Rust.
    type Locations: Debug + Default + Send + Sync + 'static;

    /// Reads what one file has of the table, with [`Section::table`] or [`Section::named`] of `file`, which is
    /// the top level. Main's file comes first.
    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>);

    /// Makes values of what all files have, once the classes of limits are known.
    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations);

    /// Whether it holds nothing, as if no file had it.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with single values of a configuration made in Rust. Files are checked as they are read.
    fn check_values(&self) -> Vec<ConfigError> {
        Vec::new()
    }

    /// Adds what is wrong between its values, and between them and the rest.
    fn check(&self, _judged: &Judged<'_>, _at: &Self::Locations, _errors: &mut Vec<ConfigError>) {}

    /// Adds what the rest names of it and what is not there. Not called after files that are broken: these
    /// may have it.
    fn check_names(&self, _judged: &Judged<'_>, _at: &Self::Locations, _errors: &mut Vec<ConfigError>) {}

    /// What it counts against `main.memory-budget`.
    fn memory(&self, _at: &Self::Locations) -> Vec<MemoryUse> {
        Vec::new()
    }

    /// Directories of the host that nobody may be granted for writing.
    fn protected(&self, _at: &Self::Locations) -> Vec<ProtectedDir> {
        Vec::new()
    }

    /// Directories of the host that it grants.
    fn granted<'c>(&'c self, _at: &'c Self::Locations) -> Vec<Granted<'c>> {
        Vec::new()
    }

    /// Contracts that Main serves because of the section, whether a file has it or not.
    fn serves() -> Vec<ContractName> {
        Vec::new()
    }
}

/// A part of a section, as it counts against the memory budget.
#[derive(Clone, Debug)]
pub struct MemoryUse {
    /// What comes to so much, with the verb, as in ``hooks `a` come``.
    pub what: String,
    /// Where it stands.
    pub location: Option<Location>,
    /// Bytes.
    pub bytes: u64,
    /// How they come about.
    pub factors: String,
}

/// A directory of the host that nobody may be granted for writing.
#[derive(Clone, Debug)]
pub struct ProtectedDir {
    /// The key that sets it.
    pub key: String,
    /// The directory.
    pub dir: PathBuf,
    /// Where it is set.
    pub location: Option<Location>,
    /// Why, which follows a colon.
    pub why: &'static str,
    /// What stands at that location.
    pub note: &'static str,
}

/// What a section may look up while values are made of what was read.
#[derive(Debug)]
pub struct Settling<'c> {
    pub(super) classes: &'c Classes,
    pub(super) errors: &'c mut Vec<ConfigError>,
}

impl Settling<'_> {
    /// The tables of `[table.NAME]` by name, each with where its name stands. Two of one name are reported,
    /// and the first stays.
    pub fn by_name<N: Clone + Display + Ord, T>(
        &mut self,
        table: &str,
        found: Vec<(Located<N>, T)>,
    ) -> BTreeMap<N, (Location, T)> {
        by_name(table, found, self.errors)
    }

    /// The limits of a class, or of the default one, with changes. A class that is not there is reported at the
    /// key `class` of the table at `path`. That messages of a size do not fit is not: only extensions have any.
    pub fn limits(&mut self, class: Option<&Located<String>>, changes: &LimitChanges, path: &str) -> Limits {
        self.classes.limits_without_messages(class, changes, path, self.errors)
    }

    /// Reports what is wrong once all files are read.
    pub fn error(&mut self, error: ConfigError) {
        self.errors.push(error);
    }
}

/// The whole configuration, and where it stands, for a section's own checks.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'c>(pub(super) Parts<'c>);

impl<'c> Judged<'c> {
    /// All that is configured.
    #[must_use]
    pub fn config(&self) -> &'c Config {
        self.0.config
    }

    /// Where an extension's `runs` lists an item, both counted from 0.
    #[must_use]
    pub fn location_of_run(&self, extension: usize, item: usize) -> Option<Location> {
        self.0.locations.extensions.get(extension)?.runs.get(item).cloned()
    }
}

/// What a configuration holds of the sections that other crates bring, by their tables.
#[derive(Default)]
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

    /// The tables that are not the same in both. One that is not there and one that is empty are the same.
    pub(super) fn different(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        let tables: BTreeSet<_> = self.0.keys().chain(other.0.keys()).copied().collect();
        tables.into_iter().filter(|table| match (self.0.get(table), other.0.get(table)) {
            (Some(one), Some(other)) => !one.is_same(&**other),
            (Some(only), None) | (None, Some(only)) => !only.is_empty(),
            (None, None) => false,
        })
    }
}

impl Clone for Sections {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|(table, held)| (*table, held.boxed())).collect())
    }
}

impl PartialEq for Sections {
    fn eq(&self, other: &Self) -> bool {
        self.different(other).next().is_none()
    }
}

impl fmt::Debug for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0).finish()
    }
}

/// A [`ConfigSection`] of a type that is not known here.
pub(super) trait Held: Any + Debug + Send + Sync {
    fn table(&self) -> &'static str;
    fn in_budget(&self) -> &'static str;
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
    fn nowhere(&self) -> Box<dyn AnyDebug>;
}

impl<S: ConfigSection> Held for S {
    fn table(&self) -> &'static str {
        S::TABLE
    }

    fn in_budget(&self) -> &'static str {
        S::IN_BUDGET
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
        if let Some(at) = judged.0.locations.sections.get::<S>() {
            ConfigSection::check(self, judged, at, errors);
        }
    }

    fn check_names(&self, judged: &Judged<'_>, errors: &mut Vec<ConfigError>) {
        if let Some(at) = judged.0.locations.sections.get::<S>() {
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

    fn nowhere(&self) -> Box<dyn AnyDebug> {
        Box::new(S::Locations::default())
    }
}

/// Where the values of sections stand, by their tables.
#[derive(Debug, Default)]
pub(super) struct SectionLocations(BTreeMap<&'static str, Box<dyn AnyDebug>>);

impl SectionLocations {
    /// Of sections that were made in Rust, and stand nowhere.
    pub(super) fn nowhere(sections: &Sections) -> Self {
        Self(sections.all().map(|held| (held.table(), held.nowhere())).collect())
    }

    fn get<S: ConfigSection>(&self) -> Option<&S::Locations> {
        (&**self.0.get(S::TABLE)? as &dyn Any).downcast_ref()
    }
}

pub(super) trait AnyDebug: Any + Debug + Send + Sync {}

impl<T: Any + Debug + Send + Sync> AnyDebug for T {}

/// A section that a loader knows.
pub(super) trait Registered: Debug + Send + Sync {
    fn table(&self) -> &'static str;
    fn begin(&self) -> Box<dyn Drafted>;
}

/// The section of that type.
pub(super) struct Of<S>(pub(super) PhantomData<fn() -> S>);

impl<S: ConfigSection> fmt::Debug for Of<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(S::TABLE)
    }
}

impl<S: ConfigSection> Registered for Of<S> {
    fn table(&self) -> &'static str {
        S::TABLE
    }

    fn begin(&self) -> Box<dyn Drafted> {
        Box::new(DraftOf::<S>(S::Draft::default()))
    }
}

/// What was read of one section so far.
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

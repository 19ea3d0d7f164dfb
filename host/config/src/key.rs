//! The entries of keys: a key of the operator's file has one, with all that is known of it.
//!
//! Reading, checking, the manual, the schema and the differences of two configurations all use the entry.

use std::fmt;

use super::{
    differences::Facts,
    error::{ConfigError, Location},
    kind::Kind,
    section::Section,
    shape::Shape,
};

/// A structure that a table of the file becomes. Its entries come from [`keys!`](crate::keys).
pub trait Table: Clone + 'static {
    /// The entry of each key.
    fn keys() -> &'static [Key<Self>];

    /// Values that are valid, but not together.
    fn contradictions(&self) -> Vec<Contradiction> {
        Vec::new()
    }

    /// The value as one string, for a list of strings and tables. `None` if it is written as a table.
    fn as_text(&self) -> Option<String> {
        None
    }
}

/// Values of two keys that are not valid together. Both names are within the table.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// Both keys. The error stands at the first one, or in a file at the second if the first is not set.
    pub keys: [&'static str; 2],
    /// How the values contradict each other.
    pub message: String,
}

impl Contradiction {
    /// The error for a table at `path` that was made in Rust.
    pub(super) fn in_rust(self, path: &str) -> ConfigError {
        let Self { keys: [key, _], message } = self;
        ConfigError::new(format!("{path}.{key}"), format!("in `{path}`: {message}"), None)
    }
}

type Read<T> = Box<dyn Fn(&mut Section<'_, '_>, &'static str, &mut T) -> Option<Places> + Send + Sync>;
type Copy<T> = Box<dyn Fn(&T, &mut T) + Send + Sync>;
/// Adds the values of the first argument to the facts, under a key.
pub(super) type Tell<T> = Box<dyn Fn(&T, &str, &mut Facts) + Send + Sync>;
/// Adds the faults of a value made in Rust, with the path of its key.
pub(super) type Judge<T> = Box<dyn Fn(&T, &str, &mut Vec<ConfigError>) + Send + Sync>;

/// The entry of a key in the tables that become a `T`.
pub struct Key<T: 'static> {
    /// The name, such as `backoff`, or `inbox.bytes` for a key in a table of its own.
    pub(super) name: &'static str,
    /// The name in two parts: the key's own table, or an empty text, and the name in that table.
    split: (&'static str, &'static str),
    shape: Shape,
    /// The meaning for the manual and the schema, in Markdown.
    meaning: &'static str,
    default: Option<&'static str>,
    /// If the table must have the key: what its value must be, in words after "must be".
    required: Option<&'static str>,
    /// Whether a reload applies a change of this key in `[main]`.
    at_once: bool,
    /// Reads the value. `None` for the table of the keys whose names start with this name.
    read: Option<Read<T>>,
    tell: Tell<T>,
    judge: Judge<T>,
    copy: Copy<T>,
}

impl<T> Key<T> {
    /// A key that sets several fields of the table or none. `read` sets them, unless the key is missing or faulty, and
    /// `tell` shows them.
    pub fn new(
        shape: Shape,
        read: impl Fn(&mut Section<'_, '_>, &'static str, &mut T) -> Option<Places> + Send + Sync + 'static,
        tell: impl Fn(&T, &str, &mut Facts) + Send + Sync + 'static,
    ) -> Self {
        Self { shape, read: Some(Box::new(read)), tell: Box::new(tell), ..Self::group() }
    }

    /// The table of the keys whose names start with this one and a dot.
    #[must_use]
    pub fn group() -> Self {
        Self {
            name: "",
            split: ("", ""),
            shape: Shape::Table,
            meaning: "",
            default: None,
            required: None,
            at_once: false,
            read: None,
            tell: Box::new(|_, _, _| ()),
            judge: Box::new(|_, _, _| ()),
            copy: Box::new(|_, _| ()),
        }
    }

    /// A key that sets one field.
    pub fn of_field<V: Clone + 'static>(
        kind: Kind<V>,
        get: fn(&T) -> &V,
        get_mut: fn(&mut T) -> &mut V,
    ) -> Self {
        let Kind { shape, read, tell, judge } = kind;
        let read_into = move |section: &mut Section<'_, '_>, key, table: &mut T| {
            let (value, places) = read(section, key, Some(get(table)))?;
            *get_mut(table) = value;
            Some(places)
        };
        Self {
            judge: Box::new(move |table, path, errors| judge(get(table), path, errors)),
            copy: Box::new(move |from, to| get_mut(to).clone_from(get(from))),
            ..Self::new(shape, read_into, move |table, key, facts| tell(get(table), key, facts))
        }
    }

    /// Also checks values made in Rust. `judge` gets the path of the key.
    #[must_use]
    pub fn judged(self, judge: impl Fn(&T, &str, &mut Vec<ConfigError>) + Send + Sync + 'static) -> Self {
        Self { judge: Box::new(judge), ..self }
    }

    /// Gives the entry its name and its meaning, which may have more than one line.
    #[must_use]
    pub fn named(self, name: &'static str, meaning: &'static str) -> Self {
        let split = name.rsplit_once('.').unwrap_or(("", name));
        Self { name, split, meaning: meaning.trim_start(), ..self }
    }

    /// The default in words, for the manual. Without it, the manual shows the default value.
    #[must_use]
    pub fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Makes the key one that its table must have. `what` completes "it must be".
    #[must_use]
    pub fn required(self, what: &'static str) -> Self {
        Self { required: Some(what), ..self }
    }

    /// Marks the key as one whose changes a reload applies.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { at_once: true, ..self }
    }

    /// The default as the manual shows it: the text of the entry, or else the value in `table`.
    fn default_in(&self, table: &T) -> String {
        let mut facts = Facts::default();
        (self.tell)(table, "", &mut facts);
        match (self.default, facts.into_only()) {
            (Some(default), _) => default.to_owned(),
            (None, Some(text)) if matches!(self.shape, Shape::Count(_)) => text,
            (None, Some(text)) if self.shape.is_quoted() => format!("`\"{}\"`", text.trim_matches('"')),
            (None, Some(text)) => format!("`{text}`"),
            (None, None) if self.shape.is_table() => String::new(),
            (None, None) => "none".to_owned(),
        }
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

/// Declares the entries of a table: for each key the meaning, as documentation, its name, the field and the
/// [kind](crate::extend::kind) of its value, and what else is said of it, as in `default("no bound")`. A key that sets
/// no field or several names no field. Fields without a key are listed after `without`. The macro does not compile if a
/// field is left out.
#[macro_export]
macro_rules! keys {
    (
        $table:ident $(without $($rest:ident),+)?;
        $($(#[doc = $meaning:literal])+ $name:literal $($field:ident)? = $kind:expr $(, $set:ident($($value:expr)?))*;)*
    ) => {
        fn keys() -> &'static [$crate::extend::Key<Self>] {
            static _ENTRIES: ::std::sync::LazyLock<Vec<$crate::extend::Key<$table>>> =
                ::std::sync::LazyLock::new(|| vec![$(
                    $crate::keys!(@key $table, $kind, $($field)?)
                        .named($name, concat!($($meaning),+))
                        $(.$set($($value)?))*
                ),*]);
            // Does not compile if a field is missing here.
            let _all = |$table { $($($field: _,)?)* $($($rest: _),+)? }: &$table| ();
            &_ENTRIES
        }
    };
    (@key $table:ident, $kind:expr, $field:ident) => {
        $crate::extend::Key::of_field($kind, |it: &$table| &it.$field, |it| &mut it.$field)
    };
    (@key $table:ident, $kind:expr,) => {
        $kind
    };
}

/// The places of a value and of what is in it, as far as a file has them.
#[derive(Clone, Debug, Default)]
pub struct Places {
    here: Option<Location>,
    items: Vec<Self>,
    /// The places by key. There are few, so a list takes less room and time than a tree.
    keys: Vec<(&'static str, Self)>,
    /// Whether reading the value reported an error, such as a faulty or a missing key.
    pub(super) is_faulty: bool,
    /// Whether a key is missing or faulty that must be there.
    pub is_incomplete: bool,
}

impl Places {
    /// The place of a value without parts.
    #[must_use]
    pub fn at(here: Location) -> Self {
        Self { here: Some(here), ..Self::default() }
    }

    /// The places of a list's items.
    #[must_use]
    pub fn of_items(items: Vec<Self>) -> Self {
        Self { items, ..Self::default() }
    }

    /// The place of the value itself.
    #[must_use]
    pub fn here(&self) -> Option<Location> {
        self.here.clone()
    }

    /// The places within the value of a key.
    #[must_use]
    pub fn within(&self, key: &str) -> Option<&Self> {
        self.keys.iter().find(|(name, _)| *name == key).map(|(_, places)| places)
    }

    /// The place of a key's value.
    #[must_use]
    pub fn of(&self, key: &str) -> Option<Location> {
        self.within(key)?.here()
    }

    /// The places within an item of a key's list, from 0.
    #[must_use]
    pub fn item(&self, key: &str, item: usize) -> Option<&Self> {
        self.within(key)?.items.get(item)
    }

    /// The place of an item of a key's list, from 0.
    #[must_use]
    pub fn of_item(&self, key: &str, item: usize) -> Option<Location> {
        self.item(key, item)?.here()
    }

    /// The place of an item of a list, from 0.
    #[must_use]
    pub fn item_here(&self, item: usize) -> Option<Location> {
        self.items.get(item)?.here()
    }

    /// These places, with the place of the table's name as the place of the value.
    #[must_use]
    pub fn named_at(self, name: Location) -> Self {
        Self { here: Some(name), ..self }
    }

    pub(super) fn insert(&mut self, key: &'static str, places: Self) {
        self.keys.push((key, places));
    }
}

impl Section<'_, '_> {
    /// Reads the keys of a table into `value`, which keeps what it has for keys that are missing or faulty. Reports
    /// missing keys that must be there, and values that contradict each other.
    pub fn keys<T: Table>(&mut self, value: &mut T) -> Places {
        let errors = self.error_count();
        let mut places = Places::at(self.location());
        self.group("", value, &mut places);
        places.keys.shrink_to_fit();
        places.is_faulty = self.error_count() > errors;
        for Contradiction { keys, message } in value.contradictions() {
            // A contradiction with a faulty value is not reported before that value is corrected.
            let is_read = |key: &&str| places.within(key).is_some() || !self.has(key);
            if keys.iter().all(is_read) {
                self.contradiction(keys.map(|key| (key, places.of(key))), &message);
            }
        }
        places
    }

    /// Reads the keys whose names start with `of` and a dot; if `of` is empty, the keys without a dot.
    fn group<T: Table>(&mut self, of: &str, value: &mut T, places: &mut Places) {
        let keys = || T::keys().iter().filter(|key| key.split.0 == of);
        for key in keys() {
            if let Some(what) = key.required {
                self.require(key.split.1, what);
            }
        }
        for key in keys() {
            let name = key.split.1;
            self.about(key.meaning, || key.default_in(value));
            match &key.read {
                Some(read) => match read(self, name, value) {
                    Some(found) => places.insert(key.name, found),
                    None => places.is_incomplete |= key.required.is_some(),
                },
                None => {
                    self.optional_table(name, |section| section.group(key.name, value, places));
                }
            }
        }
    }
}

/// The values of a table by key.
pub fn facts<T: Table>(table: &T) -> Facts {
    let mut facts = Facts::default();
    tell(table, "", &mut facts);
    facts
}

/// Adds the values of a table whose keys start with `prefix`.
pub(super) fn tell<T: Table>(table: &T, prefix: &str, facts: &mut Facts) {
    for key in T::keys() {
        (key.tell)(table, &format!("{prefix}{}", key.name), facts);
    }
}

/// A table on one line, as in `{ topic = "a", messages = 4 }`, or as the string that it can be written as.
pub(super) fn inline<T: Table>(table: &T) -> String {
    table.as_text().unwrap_or_else(|| {
        let values = T::keys().iter().flat_map(|key| {
            let mut facts = Facts::default();
            (key.tell)(table, key.name, &mut facts);
            let is_quoted = key.shape.is_quoted();
            facts.into_shown().map(move |(name, value)| match is_quoted {
                true => format!("{name} = \"{}\"", value.trim_matches('"')),
                false => format!("{name} = {value}"),
            })
        });
        format!("{{ {} }}", values.collect::<Vec<_>>().join(", "))
    })
}

/// The faults of a table made in Rust at `path`: values that a file could not have, or if there are none, values that
/// contradict each other.
pub fn faults<T: Table>(table: &T, path: &str) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    for key in T::keys() {
        (key.judge)(table, &format!("{path}.{}", key.name), &mut errors);
    }
    if errors.is_empty() {
        errors.extend(table.contradictions().into_iter().map(|found| found.in_rust(path)));
    }
    errors
}

/// Copies the values of the keys that a reload applies to a running Main.
pub(super) fn copy_at_once<T: Table>(from: &T, to: &mut T) {
    T::keys().iter().filter(|key| key.at_once).for_each(|key| (key.copy)(from, to));
}

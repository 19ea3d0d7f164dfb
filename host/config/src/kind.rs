//! Kinds of values: how a value is read, shown and checked, for the [entries of keys](super::key).

use std::{
    fmt::{self, Display},
    path::{Path, PathBuf},
    str::FromStr,
};

use weir_names::Policy;

use super::{
    differences::Facts,
    error::{ConfigError, quote},
    key::{Judge, Places, Table, Tell, faults, inline, tell},
    limits::Number,
    section::{Located, Section},
    shape::Shape,
};

type Read<V> =
    Box<dyn Fn(&mut Section<'_, '_>, &'static str, Option<&V>) -> Option<(V, Places)> + Send + Sync>;

/// A kind of value.
pub struct Kind<V> {
    pub(super) shape: Shape,
    /// Gets the value so far and returns the one in the file. `None` if the key is missing or faulty.
    pub(super) read: Read<V>,
    pub(super) tell: Tell<V>,
    pub(super) judge: Judge<V>,
}

impl<V> fmt::Debug for Kind<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.shape).finish()
    }
}

impl<V: 'static> Kind<V> {
    /// A kind of value. `read` gets the value so far, and returns `None` if the key is missing or faulty. `tell` shows
    /// a value. Values made in Rust are not checked.
    pub fn new(
        shape: Shape,
        read: impl Fn(&mut Section<'_, '_>, &'static str, Option<&V>) -> Option<(V, Places)>
        + Send
        + Sync
        + 'static,
        tell: impl Fn(&V, &str, &mut Facts) + Send + Sync + 'static,
    ) -> Self {
        Self { shape, read: Box::new(read), tell: Box::new(tell), judge: Box::new(|_, _, _| ()) }
    }

    /// Keeps values of this kind out of differences, and out of the manual's defaults.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { tell: Box::new(|_, _, _| ()), ..self }
    }

    /// Also reports values made in Rust for which `is_right` is false. `what` completes "must be".
    #[must_use]
    pub fn checked(self, what: String, is_right: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
        let before = self.judge;
        let judge = move |value: &V, path: &str, errors: &mut Vec<ConfigError>| {
            before(value, path, errors);
            if !is_right(value) {
                errors.push(must_be(path, &what));
            }
        };
        Self { judge: Box::new(judge), ..self }
    }

    /// The value may be missing.
    #[must_use]
    pub fn optional(self) -> Kind<Option<V>> {
        let Self { shape, read, tell, judge } = self;
        Kind {
            shape,
            read: Box::new(move |section, key, current: Option<&Option<V>>| {
                let (value, places) = read(section, key, current.and_then(Option::as_ref))?;
                Some((Some(value), places))
            }),
            tell: Box::new(move |value: &Option<V>, key, facts| {
                value.iter().for_each(|value| tell(value, key, facts));
            }),
            judge: Box::new(move |value: &Option<V>, path, errors| {
                value.iter().for_each(|value| judge(value, path, errors));
            }),
        }
    }
}

impl Kind<PathBuf> {
    /// Reports an empty path, or one with a NUL, of a configuration made in Rust.
    #[must_use]
    pub fn not_empty(self) -> Self {
        self.checked("a path, not empty and without NUL".to_owned(), |path| {
            let bytes = path.as_os_str().as_encoded_bytes();
            !bytes.is_empty() && !bytes.contains(&0)
        })
    }
}

impl<V: 'static> Kind<Vec<V>> {
    /// Reports a list of more than `max` items, at the first item over it, and keeps `max` items. `said` completes
    /// "`key` lists", with the number of items.
    #[must_use]
    pub fn at_most(self, max: usize, said: fn(usize) -> String) -> Self {
        let read = self.read;
        let kind = Self {
            read: Box::new(move |section, key, current| {
                let (mut items, places) = read(section, key, current)?;
                if let Some(first) = places.item_here(max) {
                    let path = section.path_of(key);
                    section.error(&*path, format!("`{path}` lists {}", said(items.len())), first);
                }
                items.truncate(max);
                Some((items, places))
            }),
            ..self
        };
        kind.checked(format!("a list of at most {max}"), move |items| items.len() <= max)
    }

    /// Differences only say how many items were added and removed: the items may be secret.
    #[must_use]
    pub fn counted(self) -> Self
    where
        V: Display,
    {
        Self { tell: Box::new(|items: &Vec<V>, key, facts| facts.counted(key, items)), ..self }
    }
}

/// An enumeration with a word for each value. [`words!`](crate::words) makes it one.
pub trait Words: Copy + 'static {
    /// Each value with its word.
    const ALL: &'static [(&'static str, Self)];

    /// The word in a file.
    fn word(self) -> &'static str;
}

/// Gives each value of an enumeration the word that stands for it in a file. `$what` goes before the words in errors.
#[macro_export]
macro_rules! words {
    ($type:ident, $what:literal: $($word:literal = $value:ident),+) => {
        impl $crate::extend::kind::Words for $type {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word),+
                }
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $crate::extend::kind::of_word(text, $what)
            }
        }
    };
}

/// The value that a word stands for.
///
/// # Errors
///
/// A message with `what` and the words, if the text is none of the words.
pub fn of_word<W: Words>(text: &str, what: &str) -> Result<W, String> {
    let found = W::ALL.iter().find(|(word, _)| *word == text);
    let words = || choice(W::ALL.iter().map(|(word, _)| *word));
    found.map(|(_, value)| *value).ok_or_else(|| format!("{} is not {what}{}", quote(text), words()))
}

/// Words to choose from, as in "`a`, `b` or `c`".
pub(super) fn choice<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// A boolean.
#[must_use]
pub fn flag() -> Kind<bool> {
    let read = |section: &mut Section<'_, '_>, key, _: Option<&bool>| found(section.flag(key)?);
    Kind::new(Shape::Flag, read, |value, key, facts| facts.plain(key, Some(value)))
}

/// A number in the range of the shape.
#[must_use]
pub fn number<N: Number + 'static>(shape: Shape) -> Kind<N> {
    let [asked, told, must_be] = [shape.clone(), shape.clone(), shape.clone()];
    let read = move |section: &mut Section<'_, '_>, key, _: Option<&N>| {
        let Located { value, location } = section.number(key, &asked)?;
        found(Located { value: N::of(value), location })
    };
    let tell = move |value: &N, key: &str, facts: &mut Facts| facts.number(key, &told, value.number());
    Kind::new(shape, read, tell)
        .checked(must_be.to_string(), move |value| value.number().is_none_or(|number| must_be.has(number)))
}

/// A number in the range of the shape, which differences show without quotes.
#[must_use]
pub(super) fn limit<N: Number + 'static>(shape: Shape) -> Kind<N> {
    let told = shape.clone();
    let tell = move |value: &N, key: &str, facts: &mut Facts| {
        facts.plain(key, value.number().map(|number| told.text(number)));
    };
    Kind { tell: Box::new(tell), ..number(shape) }
}

/// A string that `parse` understands, and that `what` describes.
#[must_use]
pub fn text<V: Display + 'static, E: Display + 'static>(
    what: &'static str,
    parse: fn(&str) -> Result<V, E>,
) -> Kind<V> {
    shaped(Shape::Text(what), parse, ToString::to_string)
}

/// One of the words of an enumeration.
#[must_use]
pub fn word<W: Words + FromStr<Err = String>>() -> Kind<W> {
    let shape = Shape::Choice(W::ALL.iter().map(|(word, _)| *word).collect());
    shaped(shape, str::parse::<W>, |value| value.word().to_owned())
}

/// One of these policies. `why_not` completes a sentence about a policy that only other messages have.
pub(super) fn policy<P: Copy + Display + Into<Policy> + Sync + 'static>(
    policies: &'static [P],
    why_not: &'static str,
) -> Kind<P> {
    let words = || policies.iter().map(|policy| (*policy).into().name());
    let parse = move |text: &str| {
        policies.iter().copied().find(|policy| (*policy).into().name() == text).ok_or_else(|| {
            let fault = match Policy::ALL.into_iter().find(|policy| policy.name() == text) {
                Some(other) => format!("`{other}` {why_not}"),
                None => format!("{} is not a policy", quote(text)),
            };
            format!("{fault}: {}", choice(words()))
        })
    };
    shaped(Shape::Choice(words().collect()), parse, ToString::to_string)
}

fn shaped<V: 'static, E: Display>(
    shape: Shape,
    parse: impl Fn(&str) -> Result<V, E> + Send + Sync + 'static,
    text: fn(&V) -> String,
) -> Kind<V> {
    let asked = shape.clone();
    let read =
        move |section: &mut Section<'_, '_>, key, _: Option<&V>| found(section.text_of(key, &asked, &parse)?);
    Kind::new(shape, read, move |value, key, facts| facts.text(key, Some(text(value))))
}

/// A path, absolute or relative to the file's directory.
#[must_use]
pub fn path(what: &'static str) -> Kind<PathBuf> {
    path_in(what, |dir, text| super::sections::check_path(text).map(|path| dir.join(path)))
}

/// The path of a socket, of at most 107 bytes.
#[must_use]
pub fn socket() -> Kind<PathBuf> {
    path_in(super::sections::SOCKET, super::sections::socket_in)
}

fn path_in(what: &'static str, parse: fn(&Path, &str) -> Result<PathBuf, String>) -> Kind<PathBuf> {
    let read = move |section: &mut Section<'_, '_>, key, _: Option<&PathBuf>| {
        let dir = section.dir().to_owned();
        found(section.text(key, what, |text| parse(&dir, text))?)
    };
    Kind::new(Shape::Text(what), read, |path: &PathBuf, key, facts| facts.text(key, Some(path.display())))
}

/// A list of strings that `parse` understands, and that `what` describes.
#[must_use]
pub fn texts<V: Display + 'static, E: Display + 'static>(
    what: &'static str,
    parse: fn(&str) -> Result<V, E>,
) -> Kind<Vec<V>> {
    let read = move |section: &mut Section<'_, '_>, key, _: Option<&Vec<V>>| {
        let found = section.texts(key, what, parse);
        section.has(key).then(|| items(found))
    };
    Kind::new(Shape::Texts(what), read, |items, key, facts| facts.texts(key, items))
}

/// A list of strings that `parse` understands, and that `what` describes. It must not be empty.
#[must_use]
pub fn some_texts<V: Display + 'static, E: Display + 'static>(
    what: &'static str,
    parse: fn(&str) -> Result<V, E>,
) -> Kind<Vec<V>> {
    let read = move |section: &mut Section<'_, '_>, key, _: Option<&Vec<V>>| {
        Some(items(section.some_texts(key, what, parse)?))
    };
    Kind { read: Box::new(read), ..texts(what, parse) }
}

/// A table with keys of its own.
#[must_use]
pub fn table<T: Table + Default>() -> Kind<T> {
    let read = |section: &mut Section<'_, '_>, key, current: Option<&T>| {
        let mut value = current.cloned().unwrap_or_default();
        let places = section.table(key, |section| section.keys(&mut value));
        Some((value, places))
    };
    let tell = |value: &T, key: &str, facts: &mut Facts| tell(value, &format!("{key}."), facts);
    Kind {
        judge: Box::new(|value, path, errors| errors.extend(faults(value, path))),
        ..Kind::new(Shape::Table, read, tell)
    }
}

/// A table with keys of its own, or none.
#[must_use]
pub fn optional_table<T: Table + Default>() -> Kind<Option<T>> {
    let read = |section: &mut Section<'_, '_>, key, _: Option<&T>| section.one_table(key);
    Kind { read: Box::new(read), ..table::<T>() }.optional()
}

/// A list of tables. `blank` makes the value that a table's keys are read into. A table without a required key is left
/// out.
#[must_use]
pub fn tables<T: Table>(blank: fn() -> Option<T>) -> Kind<Vec<T>> {
    let read = move |section: &mut Section<'_, '_>, key, _: Option<&Vec<T>>| {
        let mut found = Vec::new();
        section.tables(key, |section| found.extend(read_blank(section, blank)));
        let (values, places) = found.into_iter().unzip();
        section.has(key).then_some((values, Places::of_items(places)))
    };
    table_items(Shape::Tables, read)
}

/// A list of strings that `parse` understands, which `what` describes, and of tables. `blank` makes the value that a
/// table's keys are read into. Messages point at the value of a table's first key.
#[must_use]
pub fn texts_and_tables<T: Table, E: Display + 'static>(
    what: &'static str,
    parse: fn(&str) -> Result<T, E>,
    blank: fn() -> Option<T>,
) -> Kind<Vec<T>> {
    let read = move |section: &mut Section<'_, '_>, key, _: Option<&Vec<T>>| {
        let found = section.texts_and_tables(
            key,
            what,
            |text| parse(text).map(|value| (value, Places::default())),
            |section| read_blank(section, blank),
        );
        let found = found.into_iter().map(|Located { value: (value, places), location }| {
            let name = T::keys().first().and_then(|key| places.of(key.name));
            (value, places.named_at(name.unwrap_or(location)))
        });
        let (values, places) = found.unzip();
        section.has(key).then_some((values, Places::of_items(places)))
    };
    table_items(Shape::TextsAndTables(what), read)
}

/// Reads a table into the value that `blank` makes. `None` if a key that must be there is missing or faulty.
fn read_blank<T: Table>(section: &mut Section<'_, '_>, blank: fn() -> Option<T>) -> Option<(T, Places)> {
    let mut value = blank()?;
    let places = section.keys(&mut value);
    (!places.is_incomplete).then_some((value, places))
}

/// A list of tables that `read` reads. Each item is shown on one line.
fn table_items<T: Table>(
    shape: Shape,
    read: impl Fn(&mut Section<'_, '_>, &'static str, Option<&Vec<T>>) -> Option<(Vec<T>, Places)>
    + Send
    + Sync
    + 'static,
) -> Kind<Vec<T>> {
    let tell = |items: &Vec<T>, key: &str, facts: &mut Facts| facts.list(key, items.iter().map(inline));
    let judge = |items: &Vec<T>, path: &str, errors: &mut Vec<ConfigError>| {
        for (item, value) in items.iter().enumerate() {
            errors.extend(faults(value, &format!("{path}[{}]", item + 1)));
        }
    };
    Kind { judge: Box::new(judge), ..Kind::new(shape, read, tell) }
}

/// The error for a value made in Rust. `what` completes "must be".
pub(super) fn must_be(path: &str, what: &str) -> ConfigError {
    ConfigError::new(path, format!("`{path}` must be {what}"), None)
}

/// A value with its place.
fn found<V>(at: Located<V>) -> Option<(V, Places)> {
    Some((at.value, Places::at(at.location)))
}

/// The items of a list with their places.
pub fn items<V>(items: Vec<Located<V>>) -> (Vec<V>, Places) {
    let items = items.into_iter().map(|at| (at.value, Places::at(at.location)));
    let (values, places) = items.unzip();
    (values, Places::of_items(places))
}

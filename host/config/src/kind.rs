//! Kinds of values: how a value is read, shown and checked, for the [entries of keys](super::key).

use std::{
    fmt::{self, Display},
    path::{Path, PathBuf},
    str::FromStr,
};

use super::{
    differences::Facts,
    error::{ConfigError, quote},
    key::{Judge, Places, ReadInto, Table, Tell, faults, inline, tell},
    limits::Number,
    section::{Located, Section},
    shape::Shape,
};

type Read<V> =
    Box<dyn Fn(&mut Section<'_, '_>, &'static str, &Shape, Option<&V>) -> Option<(V, Places)> + Send + Sync>;

/// A kind of value.
pub struct Kind<V> {
    pub(super) shape: Shape,
    pub(super) default: Option<&'static str>,
    pub(super) required: Option<&'static str>,
    pub(super) at_once: bool,
    /// Has the value so far.
    pub(super) read: Read<V>,
    pub(super) tell: Tell<V>,
    pub(super) judge: Judge<V>,
}

/// A kind of value that sets several fields of a table, or none.
pub struct Whole<T> {
    pub(super) shape: Shape,
    pub(super) default: Option<&'static str>,
    pub(super) required: Option<&'static str>,
    pub(super) read: Option<ReadInto<T>>,
    pub(super) tell: Tell<T>,
}

impl<V> fmt::Debug for Kind<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.shape).finish()
    }
}

impl<T> fmt::Debug for Whole<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Whole").field(&self.shape).finish()
    }
}

impl<V: 'static> Kind<V> {
    /// A kind that is shown by `tell`, and right whatever its value is.
    pub fn new(
        shape: Shape,
        read: impl Fn(&mut Section<'_, '_>, &'static str, &Shape, Option<&V>) -> Option<(V, Places)>
        + Send
        + Sync
        + 'static,
        tell: impl Fn(&V, &str, &mut Facts) + Send + Sync + 'static,
    ) -> Self {
        let (read, tell) = (Box::new(read), Box::new(tell));
        Self {
            shape,
            default: None,
            required: None,
            at_once: false,
            read,
            tell,
            judge: Box::new(|_, _, _| ()),
        }
    }

    /// The default in words, for the manual. Without it, the manual shows the default value.
    #[must_use]
    pub fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// The table must have the key. `what` completes "it must be".
    #[must_use]
    pub fn required(self, what: &'static str) -> Self {
        Self { required: Some(what), ..self }
    }

    /// A reload of Main applies a change.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { at_once: true, ..self }
    }

    /// Differences do not show it.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { tell: Box::new(|_, _, _| ()), ..self }
    }

    /// Reports values of configurations made in Rust for which `is_right` does not hold. `what` completes "must be".
    #[must_use]
    pub fn checked(self, what: String, is_right: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
        let judge = move |value: &V, path: &str, errors: &mut Vec<ConfigError>| {
            if !is_right(value) {
                errors.push(ConfigError::new(path, format!("`{path}` must be {what}"), None));
            }
        };
        Self { judge: Box::new(judge), ..self }
    }

    /// The value may be missing.
    #[must_use]
    pub fn optional(self) -> Kind<Option<V>> {
        let Self { shape, default, required, at_once, read, tell, judge } = self;
        Kind {
            shape,
            default,
            required,
            at_once,
            read: Box::new(move |section, key, shape, current: Option<&Option<V>>| {
                let (value, places) = read(section, key, shape, current.and_then(Option::as_ref))?;
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

impl<V: 'static> Kind<Vec<V>> {
    /// Reports the first item over `max` and leaves out the rest. `what` says of what, as in
    /// `tokens, but a peer has at most 2`.
    #[must_use]
    pub fn at_most(self, max: usize, what: &'static str) -> Self {
        let read = self.read;
        let kind = Self {
            read: Box::new(move |section, key, shape, current| {
                let (mut items, places) = read(section, key, shape, current)?;
                if let Some(first) = places.item_at(max).and_then(Places::here) {
                    let path = section.path_of(key);
                    section.error(&*path, format!("`{path}` lists {} {what}", items.len()), first);
                }
                items.truncate(max);
                Some((items, places))
            }),
            ..self
        };
        kind.checked(format!("a list of at most {max}"), move |items| items.len() <= max)
    }

    /// Only the number of items that come and go is told: they may be secret.
    #[must_use]
    pub fn counted(self) -> Self
    where
        V: Display,
    {
        Self { tell: Box::new(|items: &Vec<V>, key, facts| facts.counted(key, items)), ..self }
    }
}

impl<T: 'static> Whole<T> {
    /// A value that `read` sets and `tell` shows.
    pub fn new(
        shape: Shape,
        read: impl Fn(&mut Section<'_, '_>, &'static str, &mut T) -> Places + Send + Sync + 'static,
        tell: impl Fn(&T, &str, &mut Facts) + Send + Sync + 'static,
    ) -> Self {
        Self { shape, default: None, required: None, read: Some(Box::new(read)), tell: Box::new(tell) }
    }

    /// The table of the keys whose names start with this one and a dot.
    #[must_use]
    pub fn group() -> Self {
        Self { shape: Shape::Table, default: None, required: None, read: None, tell: Box::new(|_, _, _| ()) }
    }

    /// As [`Kind::default`].
    #[must_use]
    pub fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// As [`Kind::required`].
    #[must_use]
    pub fn required(self, what: &'static str) -> Self {
        Self { required: Some(what), ..self }
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
/// `what` and the words, if it is none of them.
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
    let read = |section: &mut Section<'_, '_>, key, _: &Shape, _: Option<&bool>| found(section.flag(key)?);
    Kind::new(Shape::Flag, read, |value, key, facts| facts.plain(key, Some(value)))
}

/// A number in the range of the shape.
#[must_use]
pub fn number<N: Number + 'static>(shape: Shape) -> Kind<N> {
    let (told, must_be) = (shape.clone(), shape.clone());
    let read = |section: &mut Section<'_, '_>, key, shape: &Shape, _: Option<&N>| {
        let Located { value, location } = section.number(key, shape)?;
        found(Located { value: N::of(value), location })
    };
    let tell = move |value: &N, key: &str, facts: &mut Facts| facts.number(key, &told, value.number());
    Kind::new(shape, read, tell)
        .checked(must_be.to_string(), move |value| value.number().is_none_or(|number| must_be.has(number)))
}

/// The same, shown without quotes.
#[must_use]
pub fn limit<N: Number + 'static>(shape: Shape) -> Kind<N> {
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
    text_of(Shape::Text(what), parse)
}

/// One of the words of an enumeration.
#[must_use]
pub fn word<W: Words + FromStr<Err = String>>() -> Kind<W> {
    let shape = Shape::Choice(W::ALL.iter().map(|(word, _)| *word).collect());
    let read = |section: &mut Section<'_, '_>, key, shape: &Shape, _: Option<&W>| {
        found(section.text_of(key, shape, str::parse::<W>)?)
    };
    Kind::new(shape, read, |value, key, facts| facts.text(key, Some(value.word())))
}

/// One of these words, as `parse` understands them.
pub(super) fn one_of<V: Display + 'static, const N: usize>(
    words: [&'static str; N],
    parse: fn(&str) -> Result<V, String>,
) -> Kind<V> {
    text_of(Shape::Choice(words.to_vec()), parse)
}

fn text_of<V: Display + 'static, E: Display + 'static>(
    shape: Shape,
    parse: fn(&str) -> Result<V, E>,
) -> Kind<V> {
    let read = move |section: &mut Section<'_, '_>, key, shape: &Shape, _: Option<&V>| {
        found(section.text_of(key, shape, parse)?)
    };
    Kind::new(shape, read, |value, key, facts| facts.text(key, Some(value)))
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
    let read = move |section: &mut Section<'_, '_>, key, _: &Shape, _: Option<&PathBuf>| {
        let dir = section.dir().to_owned();
        found(section.text(key, what, |text| parse(&dir, text))?)
    };
    let kind = Kind::new(Shape::Text(what), read, |path: &PathBuf, key, facts| {
        facts.text(key, Some(path.display()));
    });
    kind.checked("a path, not empty and without NUL".to_owned(), |path| {
        let bytes = path.as_os_str().as_encoded_bytes();
        !bytes.is_empty() && !bytes.contains(&0)
    })
}

/// A list of strings that `parse` understands, and that `what` describes.
#[must_use]
pub fn texts<V: Display + 'static, E: Display + 'static>(
    what: &'static str,
    parse: fn(&str) -> Result<V, E>,
) -> Kind<Vec<V>> {
    let read = move |section: &mut Section<'_, '_>, key, _: &Shape, _: Option<&Vec<V>>| {
        Some(items(section.texts(key, what, parse)))
    };
    Kind::new(Shape::Texts(what), read, |items, key, facts| facts.texts(key, items))
}

/// The same, and the list is not empty.
#[must_use]
pub fn some_texts<V: Display + 'static, E: Display + 'static>(
    what: &'static str,
    parse: fn(&str) -> Result<V, E>,
) -> Kind<Vec<V>> {
    let read = move |section: &mut Section<'_, '_>, key, _: &Shape, _: Option<&Vec<V>>| {
        Some(items(section.some_texts(key, what, parse)?))
    };
    Kind { read: Box::new(read), ..texts(what, parse) }
}

/// A table with keys of its own.
#[must_use]
pub fn table<T: Table + Default>() -> Kind<T> {
    let read = |section: &mut Section<'_, '_>, key, _: &Shape, current: Option<&T>| {
        let mut value = current.cloned().unwrap_or_default();
        let places = section.table(key, |section| section.keys(&mut value))?;
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
    let read = |section: &mut Section<'_, '_>, key, _: &Shape, _: Option<&T>| {
        let mut value = T::default();
        let places = section.optional_table(key, |section| section.keys(&mut value))??;
        Some((value, places))
    };
    Kind { read: Box::new(read), ..table::<T>() }.optional()
}

/// A list of tables. `blank` makes the value that a table's keys are read into.
#[must_use]
pub fn tables<T: Table>(blank: fn() -> Option<T>) -> Kind<Vec<T>> {
    let read = move |section: &mut Section<'_, '_>, key, _: &Shape, _: Option<&Vec<T>>| {
        let mut found = Vec::new();
        section.tables(key, |section| found.extend(read_blank(section, blank)));
        let (values, places) = found.into_iter().unzip();
        Some((values, Places::of_items(places)))
    };
    table_items(Shape::Tables, read)
}

/// A list of strings that `parse` understands, which `what` describes, and of tables. `blank` makes the value that a
/// table's keys are read into.
#[must_use]
pub fn texts_and_tables<T: Table, E: Display + 'static>(
    what: &'static str,
    parse: fn(&str) -> Result<T, E>,
    blank: fn() -> Option<T>,
) -> Kind<Vec<T>> {
    let read = move |section: &mut Section<'_, '_>, key, _: &Shape, _: Option<&Vec<T>>| {
        let found = section.texts_and_tables(
            key,
            what,
            |text| parse(text).map(|value| (value, Places::default())),
            |section| read_blank(section, blank),
        );
        let found = found
            .into_iter()
            .map(|Located { value: (value, places), location }| (value, places.named_at(location)));
        let (values, places) = found.unzip();
        Some((values, Places::of_items(places)))
    };
    table_items(Shape::TextsAndTables(what), read)
}

fn read_blank<T: Table>(section: &mut Section<'_, '_>, blank: fn() -> Option<T>) -> Option<(T, Places)> {
    let mut value = blank()?;
    let places = section.keys(&mut value)?;
    Some((value, places))
}

fn table_items<T: Table>(
    shape: Shape,
    read: impl Fn(&mut Section<'_, '_>, &'static str, &Shape, Option<&Vec<T>>) -> Option<(Vec<T>, Places)>
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

//! The values of a table by key, in the notation of a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use serde::{Deserialize, Serialize};
use weir_names::harmless;

use crate::shape::Shape;

/// Replaces values that may be secret.
const HIDDEN: &str = "…";

/// A key with different values in two configurations, in the notation of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The key, such as `limits.memory`.
    pub key: String,
    /// The value before. `None` if it was not set, or empty.
    pub before: Option<String>,
    /// The value after. `None` if it is not set, or empty.
    pub after: Option<String>,
    /// What changed, if the values do not show it, such as `1 removed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Difference {
    /// The key, with the note.
    pub(super) fn in_short(&self) -> String {
        match &self.note {
            Some(note) => format!("{}: {note}", self.key),
            None => self.key.clone(),
        }
    }
}

/// The values of a table by key. Texts are escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<String, Fact>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fact {
    Shown(String),
    /// A value that may be secret.
    Hidden(String),
    /// Items that may be secret.
    Counted(BTreeSet<String>),
}

impl Fact {
    fn shown(self) -> String {
        match self {
            Self::Shown(text) => text,
            Self::Hidden(_) | Self::Counted(_) => HIDDEN.to_owned(),
        }
    }
}

impl Facts {
    /// Adds a value without quotes, such as a number. Adds nothing for `None`.
    pub fn plain(&mut self, key: &str, value: Option<impl Display>) {
        self.0.extend(value.map(|value| (key.to_owned(), Fact::Shown(value.to_string()))));
    }

    /// Adds a string. Adds nothing for `None`.
    pub fn text(&mut self, key: &str, value: Option<impl Display>) {
        self.plain(key, value.map(quoted));
    }

    /// Adds a number: times in quotes, all others without. Adds nothing for `None`.
    pub fn number(&mut self, key: &str, shape: &Shape, number: Option<u64>) {
        let text = number.map(|number| shape.text(number));
        if matches!(shape, Shape::Time(_)) { self.text(key, text) } else { self.plain(key, text) }
    }

    /// Adds a list of strings. Adds nothing if it is empty.
    pub fn texts(&mut self, key: &str, items: impl IntoIterator<Item: Display>) {
        self.list(key, items.into_iter().map(quoted));
    }

    /// Adds a list of values in the notation of a file. Adds nothing if it is empty.
    pub(crate) fn list(&mut self, key: &str, items: impl Iterator<Item = String>) {
        let items: Vec<String> = items.collect();
        self.plain(key, (!items.is_empty()).then(|| format!("[{}]", items.join(", "))));
    }

    /// Adds a secret value. A difference names the key, but never shows the value.
    pub(crate) fn secret(&mut self, key: String, value: String) {
        self.0.insert(key, Fact::Hidden(value));
    }

    /// Adds secret items. A difference only says how many were added and removed.
    pub fn counted(&mut self, key: &str, items: impl IntoIterator<Item: Display>) {
        let items: BTreeSet<_> = items.into_iter().map(|item| item.to_string()).collect();
        if !items.is_empty() {
            self.0.insert(key.to_owned(), Fact::Counted(items));
        }
    }

    /// The keys with values as they are shown.
    pub(crate) fn into_shown(self) -> impl Iterator<Item = (String, String)> {
        self.0.into_iter().map(|(key, fact)| (key, fact.shown()))
    }

    /// The value, if there is exactly one.
    pub(crate) fn into_only(self) -> Option<String> {
        let mut facts = self.into_shown();
        let (_, value) = facts.next()?;
        facts.next().is_none().then_some(value)
    }

    /// The keys whose values are different in `after`, in alphabetical order.
    pub(super) fn differences(self, after: Self) -> Vec<Difference> {
        let Self(mut after) = after;
        let mut pairs: BTreeMap<String, (Option<Fact>, Option<Fact>)> = BTreeMap::new();
        for (key, before) in self.0 {
            let after = after.remove(&key);
            if after.as_ref() != Some(&before) {
                pairs.insert(key, (Some(before), after));
            }
        }
        pairs.extend(after.into_iter().map(|(key, after)| (key, (None, Some(after)))));
        pairs.into_iter().map(|(key, (before, after))| difference(key, before, after)).collect()
    }
}

fn difference(key: String, before: Option<Fact>, after: Option<Fact>) -> Difference {
    let items = |fact: &Option<Fact>| match fact {
        Some(Fact::Counted(items)) => items.clone(),
        _ => BTreeSet::new(),
    };
    let (old, new) = (items(&before), items(&after));
    let counts = [(new.difference(&old).count(), "added"), (old.difference(&new).count(), "removed")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    let note = (!counts.is_empty()).then(|| counts.join(", "));
    Difference { key, before: before.map(Fact::shown), after: after.map(Fact::shown), note }
}

pub(crate) fn quoted(text: impl Display) -> String {
    format!("\"{}\"", harmless(text, usize::MAX))
}

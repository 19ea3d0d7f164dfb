//! The values of a table by key, in the notation of a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use weir_names::harmless;

use crate::{
    DirGrant, DirMode, Grants, HttpGrant, LIMIT_KEYS, LimitKey, Limits, StoreGrant, SubscribeGrant, bytes,
};

/// Replaces values that may be secret.
const HIDDEN: &str = "…";

/// A key with different values in two configurations, in the notation of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// As in `limits.memory`.
    pub key: String,
    /// The value before. `None`: not set, or empty.
    pub before: Option<String>,
    /// The value after. `None`: not set, or empty.
    pub after: Option<String>,
    /// What changed, if the values do not show it, as in `1 removed`.
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
    /// May be secret.
    Hidden(String),
    /// Items that may be secret.
    Counted(BTreeSet<String>),
}

impl Facts {
    /// Adds a value without quotes, such as a number. `None`: not set.
    pub fn plain(&mut self, key: &str, value: Option<impl Display>) {
        self.0.extend(value.map(|value| (key.to_owned(), Fact::Shown(value.to_string()))));
    }

    /// Adds a string. `None`: not set.
    pub fn text(&mut self, key: &str, value: Option<impl Display>) {
        self.plain(key, value.map(quoted));
    }

    /// Adds a number of bytes. `None`: not set.
    pub fn size(&mut self, key: &str, value: Option<u64>) {
        self.plain(key, value.map(bytes));
    }

    /// Adds a time. `None`: not set.
    pub fn time(&mut self, key: &str, value: Option<Duration>) {
        self.text(key, value.map(humantime::format_duration));
    }

    /// Adds a list of strings. An empty one is as none.
    pub fn texts(&mut self, key: &str, items: impl IntoIterator<Item: Display>) {
        self.plain(key, list(items.into_iter().map(quoted)));
    }

    /// Adds secret items. Only how many come and go is told.
    pub fn counted(&mut self, key: &str, items: impl IntoIterator<Item: Display>) {
        let items: BTreeSet<_> = items.into_iter().map(|item| item.to_string()).collect();
        if !items.is_empty() {
            self.0.insert(key.to_owned(), Fact::Counted(items));
        }
    }

    /// Adds the class, and those limits that hold for the table.
    pub fn limits(&mut self, limits: &Limits, holds: impl Fn(&LimitKey) -> bool) {
        self.text("class", Some(&limits.class));
        for key in LIMIT_KEYS.iter().filter(|key| holds(key)) {
            let value = (key.get)(limits).map(|value| key.shape.text(value));
            self.plain(&format!("limits.{}", key.name), value);
        }
    }

    /// Adds what is granted. Values of variables are hidden.
    pub fn grants(&mut self, grants: &Grants) {
        let Grants { dirs, env, net, http: requests, stores } = grants;
        self.plain("grants.dirs", list(dirs.iter().map(directory)));
        self.texts("grants.net", net);
        self.plain("grants.http", list(requests.iter().map(http)));
        self.plain("grants.stores", list(stores.iter().map(store)));
        self.0.extend(env.iter().map(|(name, value)| {
            (format!("grants.env.{}", harmless(name, usize::MAX)), Fact::Hidden(value.clone()))
        }));
    }

    pub(super) fn subscribes(&mut self, grants: &[SubscribeGrant]) {
        self.plain("subscribes", list(grants.iter().map(subscription)));
    }

    /// The keys with other values in `after`, in alphabetical order.
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
    let shown = |fact| match fact {
        Fact::Shown(text) => text,
        Fact::Hidden(_) | Fact::Counted(_) => HIDDEN.to_owned(),
    };
    let note = (!counts.is_empty()).then(|| counts.join(", "));
    Difference { key, before: before.map(shown), after: after.map(shown), note }
}

fn quoted(text: impl Display) -> String {
    format!("\"{}\"", harmless(text, usize::MAX))
}

fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
}

fn subscription(SubscribeGrant { topic, policy, messages, bytes: size }: &SubscribeGrant) -> String {
    let messages = messages.map(|messages| format!(", messages = {messages}")).unwrap_or_default();
    let size = size.map(|size| format!(", bytes = {}", quoted(bytes(size)))).unwrap_or_default();
    format!("{{ topic = {}, policy = {}{messages}{size} }}", quoted(topic), quoted(policy))
}

fn store(StoreGrant { name, mode }: &StoreGrant) -> String {
    match mode {
        DirMode::Rw => quoted(name),
        DirMode::Ro => format!("{{ name = {}, mode = \"ro\" }}", quoted(name)),
    }
}

fn directory(DirGrant { host, guest, mode, max_bytes, max_files }: &DirGrant) -> String {
    let mode = match mode {
        DirMode::Ro => "ro",
        DirMode::Rw => "rw",
    };
    let max_bytes = max_bytes.map(|max| format!(", max-bytes = {}", quoted(bytes(max)))).unwrap_or_default();
    let max_files = max_files.map(|max| format!(", max-files = {max}")).unwrap_or_default();
    let (host, guest) = (quoted(host.display()), quoted(guest));
    format!("{{ host = {host}, guest = {guest}, mode = \"{mode}\"{max_bytes}{max_files} }}")
}

fn http(HttpGrant { to, methods, addresses }: &HttpGrant) -> String {
    let methods = list(methods.iter().map(quoted)).unwrap_or_else(|| "[]".to_owned());
    let addresses = list(addresses.iter().map(quoted));
    let addresses = addresses.map(|list| format!(", addresses = {list}")).unwrap_or_default();
    format!("{{ to = {}, methods = {methods}{addresses} }}", quoted(to))
}

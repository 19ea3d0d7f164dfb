//! Differences between configurations, key by key, for people.

mod facts;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};

pub(super) use self::facts::quoted;
pub use self::facts::{Difference, Facts};
use super::{
    Config, ExtensionConfig, MainConfig, PeerConfig,
    key::{copy_at_once, facts},
};

/// Keys that [`TableDifference`] names in a line.
const NAMED_MAX: usize = 8;

/// How one table differs between two configurations.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct TableDifference {
    /// The table, such as `main`, `extension.storage`, `queue.uploads` or `peer."app:player"`.
    pub table: String,
    /// What happened to the table.
    pub change: TableChange,
    /// When a reload applies the change.
    pub takes_effect: Effect,
    /// The keys that differ, in alphabetical order. Empty for extensions that are added or removed, and for sections
    /// that do not tell their keys.
    pub keys: Vec<Difference>,
}

/// What happened to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableChange {
    /// Only the second configuration has it.
    Added,
    /// Only the first configuration has it.
    Removed,
    /// Both have it, with different values. Also stands for an unknown word in the answer of another version of Main.
    #[serde(other)]
    Changed,
}

/// When a reload applies a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// During the reload.
    AtOnce,
    /// When Main is started anew. Also stands for an unknown word in the answer of another version of Main.
    #[serde(other)]
    Restart,
}

/// The table and its keys in short, as in `` `peer."app:player"` (tokens: 1 removed, wants) ``.
impl fmt::Display for TableDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.table)?;
        if self.change != TableChange::Changed || self.keys.is_empty() {
            return Ok(());
        }
        let mut names: Vec<_> = self.keys.iter().take(NAMED_MAX).map(Difference::in_short).collect();
        if let Some(more) = self.keys.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            names.push(format!("{more} more"));
        }
        write!(f, " ({})", names.join(", "))
    }
}

impl ExtensionConfig {
    /// The keys that differ from `other`, in alphabetical order.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        // Most extensions are unchanged, and comparing their some 80 facts would take longer.
        if self == other {
            return Vec::new();
        }
        facts(self).differences(facts(other))
    }

    /// How the extension's table differs from that of `other`. `None` if no key differs.
    #[must_use]
    pub fn table_difference(&self, other: &Self) -> Option<TableDifference> {
        changed(table_of(self), self.differences(other), Effect::AtOnce)
    }
}

impl PeerConfig {
    /// The keys that differ from `other`, in alphabetical order. Of tokens, only the number is told.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        facts(self).differences(facts(other))
    }
}

impl MainConfig {
    /// The keys except `serves` that differ from `other`, in alphabetical order.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        facts(self).differences(facts(other))
    }

    /// Takes from `other` what a reload applies. All other keys stay until Main is started anew.
    pub fn apply(&mut self, other: &Self) {
        copy_at_once(other, self);
    }

    /// How `[main]` differs from that of `other`: what a reload applies, and what needs a new start.
    #[must_use]
    pub fn table_differences(&self, other: &Self) -> Vec<TableDifference> {
        let mut applied = self.clone();
        applied.apply(other);
        let at_once = changed("main".to_owned(), self.differences(&applied), Effect::AtOnce);
        let later = changed("main".to_owned(), applied.differences(other), Effect::Restart);
        at_once.into_iter().chain(later).collect()
    }
}

impl Config {
    /// All that differs in `other`, the later configuration: `[main]` without `serves`, each instance of the
    /// extensions, and the other tables.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<TableDifference> {
        let mut all = self.main.table_differences(&other.main);
        let [before, after] = [self, other].map(|config| {
            let (_, extensions) = config.clone().into_parts();
            extensions.into_iter().map(|it| (it.id.clone(), it)).collect::<BTreeMap<_, _>>()
        });
        for id in keys(&before, &after) {
            let alone = |extension, change| TableDifference {
                table: table_of(extension),
                change,
                takes_effect: Effect::AtOnce,
                keys: Vec::new(),
            };
            all.extend(match (before.get(id), after.get(id)) {
                (Some(before), Some(after)) => before.table_difference(after),
                (Some(before), None) => Some(alone(before, TableChange::Removed)),
                (None, after) => after.map(|after| alone(after, TableChange::Added)),
            });
        }
        all.extend(self.table_differences(other));
        all
    }

    /// How the tables beside `[main]` and the extensions differ in `other`, the later configuration.
    #[must_use]
    pub fn table_differences(&self, other: &Self) -> Vec<TableDifference> {
        let mut differences = between(self.own_tables(), other.own_tables(), Effect::AtOnce);
        let sections = self.sections.names(&other.sections);
        for table in sections {
            let [before, after] = [self, other].map(|config| config.sections.facts(table));
            let needs_restart = [self, other].iter().any(|config| config.sections.needs_restart(table));
            let effect = if needs_restart { Effect::Restart } else { Effect::AtOnce };
            let mut found = between(before, after, effect);
            if found.is_empty() && self.sections.differs(&other.sections, table) {
                // The crate of this section does not tell its keys, so only the table is named.
                found.push(TableDifference {
                    table: table.to_owned(),
                    change: TableChange::Changed,
                    takes_effect: effect,
                    keys: Vec::new(),
                });
            }
            differences.extend(found);
        }
        differences
    }

    /// Replaces the tables that only a new start changes with those of `running`. A table that `running` does not have
    /// stays.
    pub fn keep_until_restart(&mut self, running: &Self) {
        self.sections.keep(&running.sections);
    }

    /// A copy without Main and the extensions.
    #[must_use]
    pub fn beside_extensions(&self) -> Self {
        let Self { peers, queues, topics, sections, class_texts, .. } = self;
        let (peers, queues) = (peers.clone(), queues.clone());
        let (topics, sections) = (topics.clone(), sections.clone());
        Self { peers, queues, topics, sections, class_texts: class_texts.clone(), ..Self::default() }
    }

    /// The values of queues, topics and peers, by table.
    fn own_tables(&self) -> BTreeMap<String, Facts> {
        let queues = self.queues.iter().map(|(name, queue)| (format!("queue.{name}"), facts(queue)));
        let topics = self.topics.iter().map(|(name, topic)| (format!("topic.\"{name}\""), facts(topic)));
        let peers = self.peers.iter().map(|peer| (format!("peer.\"{}\"", peer.name), facts(peer)));
        queues.chain(topics).chain(peers).collect()
    }
}

fn between(
    before: BTreeMap<String, Facts>,
    mut after: BTreeMap<String, Facts>,
    takes_effect: Effect,
) -> Vec<TableDifference> {
    let mut found = Vec::new();
    let mut push = |table, change, keys| {
        found.push(TableDifference { table, change, takes_effect, keys });
    };
    for (table, facts) in before {
        match after.remove(&table) {
            None => push(table, TableChange::Removed, facts.differences(Facts::default())),
            Some(other) if other == facts => {}
            Some(other) => push(table, TableChange::Changed, facts.differences(other)),
        }
    }
    for (table, facts) in after {
        push(table, TableChange::Added, Facts::default().differences(facts));
    }
    found.sort_by(|one, other| one.table.cmp(&other.table));
    found
}

/// A difference of a table that has these different keys. `None` if there are none.
fn changed(table: String, keys: Vec<Difference>, takes_effect: Effect) -> Option<TableDifference> {
    let change = TableChange::Changed;
    (!keys.is_empty()).then_some(TableDifference { table, change, takes_effect, keys })
}

fn table_of(extension: &ExtensionConfig) -> String {
    format!("extension.{}", extension.id)
}

/// The keys of both maps.
fn keys<'m, K: Ord, V>(one: &'m BTreeMap<K, V>, other: &'m BTreeMap<K, V>) -> BTreeSet<&'m K> {
    one.keys().chain(other.keys()).collect()
}

//! A reload in one line, for logs.

use std::collections::BTreeSet;

use weir_config::{Effect, TableChange, TableDifference};
use weir_names::harmless;

use super::ReloadReport;

/// Names of each kind.
const NAMED_MAX: usize = 16;

/// Bytes of the line.
const LENGTH_MAX: usize = 2048;

impl ReloadReport {
    /// How much was added, removed and changed, and its names, in one line of at most 2 KiB. Shows no values.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self { added, removed, changed, failed, differences, .. } = self;
        let table = |id: &dyn std::fmt::Display| format!("extension.{id}");
        let failed: BTreeSet<String> = failed.iter().map(|failed| table(&failed.extension)).collect();
        let of = |change: TableChange, effect: Effect| -> Vec<&TableDifference> {
            let is_it = |it: &&TableDifference| {
                it.change == change && it.takes_effect == effect && !failed.contains(&it.table)
            };
            differences.iter().filter(is_it).collect()
        };
        let with = |extensions: Vec<String>, tables: Vec<&TableDifference>| -> Vec<String> {
            let named: BTreeSet<&str> = tables.iter().map(|it| &*it.table).collect();
            let others = extensions.iter().filter(|table| !named.contains(&***table));
            let others: Vec<_> = others.map(|table| format!("`{table}`")).collect();
            others.into_iter().chain(tables.iter().map(ToString::to_string)).collect()
        };
        let names = |ids: &[weir_names::ExtensionId]| ids.iter().map(|id| table(id)).collect::<Vec<_>>();
        let added = with(names(added), of(TableChange::Added, Effect::AtOnce));
        let removed = with(names(removed), of(TableChange::Removed, Effect::AtOnce));
        let changed = with(names(changed), of(TableChange::Changed, Effect::AtOnce));
        let failed: Vec<_> = failed.iter().map(|table| format!("`{table}`")).collect();
        let later = [TableChange::Added, TableChange::Removed, TableChange::Changed].into_iter();
        let later: Vec<_> =
            later.flat_map(|change| of(change, Effect::Restart)).map(ToString::to_string).collect();
        let kinds = [("added", added), ("removed", removed), ("changed", changed), ("failed", failed)];
        let counts = kinds.each_ref().map(|(what, names)| format!("{} {what}", names.len())).join(", ");
        let kinds = kinds.into_iter().chain([("for the next start of Main", later)]);
        let kinds: Vec<_> = kinds.filter(|(_, names)| !names.is_empty()).collect();
        let kinds: Vec<_> =
            kinds.into_iter().map(|(what, names)| format!("{what} {}", listed(names))).collect();
        let line = if kinds.is_empty() { counts } else { format!("{counts}: {}", kinds.join("; ")) };
        harmless(line, LENGTH_MAX)
    }
}

fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    names.extend((more > 0).then(|| format!("{more} more")));
    names.join(", ")
}

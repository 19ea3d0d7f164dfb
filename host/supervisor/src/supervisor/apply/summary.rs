//! The outcome of a configuration reload in one line, for logs.

use std::collections::BTreeSet;

use weir_config::{Effect, TableChange, TableDifference};
use weir_names::{ExtensionId, harmless};

use super::ReloadReport;

/// How many names of each kind are listed.
const NAMED_MAX: usize = 16;

/// How many bytes the line has at most.
const LENGTH_MAX: usize = 2048;

impl ReloadReport {
    /// Says how many tables were added, removed, changed or failed, and names up to 16 of each, in one line of at most
    /// 2 KiB. Also names those that wait for a restart of Main or were not reached. Shows no values.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self { added, removed, changed, failed, differences, not_reached, .. } = self;
        let table = |id: &dyn std::fmt::Display| format!("extension.{id}");
        let failed: BTreeSet<String> = failed.iter().map(|failed| table(&failed.extension)).collect();
        let of = |change: TableChange, effect: Effect| -> Vec<&TableDifference> {
            let is_it = |it: &&TableDifference| {
                it.change == change && it.takes_effect == effect && !failed.contains(&it.table)
            };
            differences.iter().filter(is_it).collect()
        };
        let with = |extensions: &[ExtensionId], change| -> Vec<String> {
            let tables = of(change, Effect::AtOnce);
            let others = extensions.iter().map(|id| table(id));
            let others = others.filter(|table| !tables.iter().any(|it| it.table == *table));
            others.map(|table| format!("`{table}`")).chain(tables.iter().map(ToString::to_string)).collect()
        };
        let added = with(added, TableChange::Added);
        let removed = with(removed, TableChange::Removed);
        let changed = with(changed, TableChange::Changed);
        let failed: Vec<_> = failed.iter().map(|table| format!("`{table}`")).collect();
        let later = [TableChange::Added, TableChange::Removed, TableChange::Changed].into_iter();
        let later: Vec<_> =
            later.flat_map(|change| of(change, Effect::Restart)).map(ToString::to_string).collect();
        let kinds = [("added", added), ("removed", removed), ("changed", changed), ("failed", failed)];
        let counts = kinds.each_ref().map(|(what, names)| format!("{} {what}", names.len())).join(", ");
        let not_reached: Vec<_> = not_reached.iter().map(|id| format!("`{}`", table(id))).collect();
        let more = [("for the next start of Main", later), ("not reached", not_reached)];
        let kinds = kinds.into_iter().chain(more);
        let kinds = kinds.filter(|(_, names)| !names.is_empty());
        let kinds: Vec<_> = kinds.map(|(what, names)| format!("{what} {}", listed(names))).collect();
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

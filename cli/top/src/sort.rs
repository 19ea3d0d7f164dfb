//! The order of the rows, and which are shown.

use std::cmp::Ordering;

use clap::ValueEnum;

use crate::model::{Row, as_f64};

/// What the rows are sorted by. Largest first, but names from A to Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// Name, from A to Z.
    Name,
    /// Share of processor time.
    Cpu,
    /// Bytes of memory in use.
    Memory,
    /// Memory in use as a part of its limit.
    Limit,
    /// Messages a second.
    Messages,
    /// Time within which half of the requests were answered.
    P50,
    /// Time within which 99 of 100 requests were answered.
    P99,
    /// Waiting messages.
    Inbox,
    /// Lost messages.
    Lost,
    /// Number of restarts.
    Restarts,
}

/// All sort keys, each with the letter that chooses it and its name in the title.
const KEYS: [(SortKey, char, &str); 10] = [
    (SortKey::Name, 'n', "name"),
    (SortKey::Cpu, 'c', "CPU"),
    (SortKey::Memory, 'm', "memory"),
    (SortKey::Limit, 'u', "memory limit"),
    (SortKey::Messages, 't', "messages"),
    (SortKey::P50, 'h', "p50"),
    (SortKey::P99, 'p', "p99"),
    (SortKey::Inbox, 'i', "inbox"),
    (SortKey::Lost, 'o', "losses"),
    (SortKey::Restarts, 'e', "restarts"),
];

impl SortKey {
    /// Returns the name in the title.
    pub(crate) fn name(self) -> &'static str {
        KEYS.iter().find(|(key, ..)| *key == self).map_or("", |(_, _, name)| name)
    }

    /// Returns the sort key of a letter.
    pub(crate) fn of_letter(letter: char) -> Option<Self> {
        KEYS.iter().find(|(_, known, _)| *known == letter).map(|(key, ..)| *key)
    }

    pub(crate) fn next(self) -> Self {
        Self::after(Self::value_variants().iter().copied(), self)
    }

    pub(crate) fn previous(self) -> Self {
        Self::after(Self::value_variants().iter().copied().rev(), self)
    }

    fn after(keys: impl Iterator<Item = Self> + Clone, key: Self) -> Self {
        keys.cycle().skip_while(|other| *other != key).nth(1).unwrap_or(key)
    }

    fn compare(self, one: &Row, other: &Row, is_reversed: bool) -> Ordering {
        let turned = |order: Ordering| if is_reversed { order.reverse() } else { order };
        match (self, self.figure(one), self.figure(other)) {
            (Self::Name, ..) => {
                let [one, other] = [one, other].map(|row| row.key.name());
                turned(one.to_lowercase().cmp(&other.to_lowercase()).then_with(|| one.cmp(other)))
            }
            (_, Some(one), Some(other)) => turned(other.total_cmp(&one)),
            // An unknown figure comes last in both orders.
            (_, one, other) => other.is_some().cmp(&one.is_some()),
        }
    }

    fn figure(self, row: &Row) -> Option<f64> {
        match self {
            Self::Name => None,
            // The share is rounded as it is shown, so that rows that show the same do not change places at each look.
            Self::Cpu => row.cpu.map(|share| (share * 1000.0).round()),
            Self::Memory => row.memory.map(|(used, _)| as_f64(used)),
            Self::Limit => row.memory_share(),
            Self::Messages => row.messages.map(|rate| (rate * 10.0).round()),
            Self::P50 => row.p50.map(|quantile| quantile.seconds()),
            Self::P99 => row.p99.map(|quantile| quantile.seconds()),
            Self::Inbox => Some(as_f64(row.inbox)),
            Self::Lost => Some(as_f64(row.lost)),
            Self::Restarts => row.restarts.map(as_f64),
        }
    }
}

/// Returns the rows that match the filter, sorted. Equal ones stay in the order of the configuration.
pub(crate) fn shown<'a>(rows: &'a [Row], filter: &str, key: SortKey, is_reversed: bool) -> Vec<&'a Row> {
    let filter = filter.to_lowercase();
    let matches =
        |row: &&Row| [row.key.name(), &row.state].iter().any(|text| text.to_lowercase().contains(&filter));
    let mut rows: Vec<_> = rows.iter().filter(matches).collect();
    rows.sort_by(|one, other| key.compare(one, other, is_reversed));
    rows
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::model::{Model, tests::look};

    fn names(model: &Model, filter: &str, key: SortKey, is_reversed: bool) -> Vec<String> {
        shown(&model.rows, filter, key, is_reversed).iter().map(|row| row.key.name().to_owned()).collect()
    }

    fn model() -> Model {
        let mut model = Model::default();
        model.add(look(
            Instant::now(),
            0,
            r#"{"id":"b","state":"ready","cpu-share":0.1004,"memory":5,"memory-limit":100},
               {"id":"c","state":"failed","cpu-share":0.9,"memory":4,"memory-limit":5},
               {"id":"a","state":"ready","cpu-share":0.1001,"memory":6,"memory-limit":10}"#,
        ));
        model
    }

    #[test]
    fn the_largest_comes_first_and_equal_ones_stay_as_configured() {
        let model = model();
        assert_eq!(names(&model, "", SortKey::Cpu, false), ["c", "b", "a"]);
        assert_eq!(names(&model, "", SortKey::Memory, false), ["a", "b", "c"]);
        assert_eq!(names(&model, "", SortKey::Limit, false), ["c", "a", "b"]);
        assert_eq!(names(&model, "", SortKey::Memory, true), ["c", "b", "a"]);
    }

    #[test]
    fn names_are_sorted_from_a_to_z() {
        assert_eq!(names(&model(), "", SortKey::Name, false), ["a", "b", "c"]);
    }

    #[test]
    fn a_filter_finds_names_and_states_in_any_case() {
        let model = model();
        assert_eq!(names(&model, "FAIL", SortKey::Name, false), ["c"]);
        assert_eq!(names(&model, "C", SortKey::Name, false), ["c"]);
        assert!(names(&model, "nobody", SortKey::Name, false).is_empty());
    }

    #[test]
    fn each_key_follows_another_and_all_come_around() {
        assert_eq!(SortKey::value_variants(), KEYS.map(|(key, ..)| key));
        let mut key = SortKey::Cpu;
        for _ in SortKey::value_variants() {
            assert_eq!(key.next().previous(), key);
            key = key.next();
        }
        assert_eq!(key, SortKey::Cpu);
    }
}

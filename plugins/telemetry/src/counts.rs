//! Counts by topic, and their stored form.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use weir_contracts::telemetry::{Count, Snapshot, TopicCount};

use crate::minute::Minute;

/// Topics with counts of their own. Bounded so that a snapshot, with topics of 256 bytes, is under 64 KiB.
const MAX_TOPICS: usize = 128;

#[derive(Debug)]
pub(crate) struct Counts {
    totals: Totals,
    /// The last minute of those topics of `totals` that had events since the start of this instance.
    minutes: BTreeMap<String, Minute>,
    other: Minute,
}

/// Events since the first start.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Seconds of Unix time. None if nothing was counted before.
    since: Option<u64>,
    topics: BTreeMap<String, Total>,
    other: Total,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Total {
    count: u64,
    lost: u64,
}

impl Counts {
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let totals = Totals { since: Some(now.as_secs()), ..Totals::default() };
        Self { totals, minutes: BTreeMap::new(), other: Minute::default() }
    }

    /// Counts an event, and those lost before it.
    pub(crate) fn add(&mut self, topic: &str, lost: u64, now: Duration) {
        match self.totals.add(topic, Total { count: 1, lost }) {
            Some(topic) => self.minutes.entry(topic.to_owned()).or_default().add(now),
            None => self.other.add(now),
        }
    }

    /// Adds what an earlier run counted. The counts then begin with the earlier start.
    pub(crate) fn add_all(&mut self, earlier: Totals) {
        self.totals.since = self.totals.since.min(earlier.since.or(self.totals.since));
        self.totals.other.add(earlier.other);
        for (topic, total) in earlier.topics {
            self.totals.add(&topic, total);
        }
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(crate) fn snapshot(&mut self, now: Duration) -> Snapshot {
        let Self { totals, minutes, other } = self;
        let mut per_second = |topic| minutes.get_mut(topic).map_or(0.0, |minute| minute.per_second(now));
        Snapshot {
            since: totals.since.unwrap_or_default(),
            topics: totals
                .topics
                .iter()
                .map(|(topic, total)| TopicCount {
                    topic: topic.clone(),
                    count: total.count,
                    lost: total.lost,
                    per_second_1m: per_second(topic),
                })
                .collect(),
            other: Count {
                count: totals.other.count,
                lost: totals.other.lost,
                per_second_1m: other.per_second(now),
            },
        }
    }
}

impl Totals {
    /// Adds to a topic and returns it. A new topic beyond [`MAX_TOPICS`] adds to `other`, and the result is `None`.
    fn add<'a>(&mut self, topic: &'a str, total: Total) -> Option<&'a str> {
        let is_full = self.topics.len() >= MAX_TOPICS;
        match self.topics.get_mut(topic) {
            Some(known) => known.add(total),
            None if is_full => {
                self.other.add(total);
                return None;
            }
            None => {
                self.topics.insert(topic.to_owned(), total);
            }
        }
        Some(topic)
    }
}

impl Total {
    fn add(&mut self, more: Self) {
        self.count = self.count.saturating_add(more.count);
        self.lost = self.lost.saturating_add(more.lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_beyond_those_that_are_told_apart_are_counted_together() {
        let mut counts = Counts::new();
        for number in 0..MAX_TOPICS + 10 {
            for _ in 0..3 {
                counts.add(&format!("t{number}"), 1, Duration::ZERO);
            }
        }
        let snapshot = counts.snapshot(Duration::ZERO);
        assert_eq!(snapshot.topics.len(), MAX_TOPICS);
        assert!(snapshot.topics.iter().all(|topic| (topic.count, topic.lost) == (3, 3)));
        assert_eq!((snapshot.other.count, snapshot.other.lost), (30, 30));
        assert_eq!(snapshot.other.per_second_1m, 0.5);
    }

    #[test]
    fn the_largest_snapshot_fits_into_the_smallest_message() {
        let mut counts = Counts::new();
        for number in 0..1000 {
            counts.add(&format!("{number:0256}"), u64::MAX, Duration::ZERO);
        }
        assert!(serde_json::to_vec(&counts.snapshot(Duration::ZERO)).unwrap().len() < 64 * 1024);
    }

    #[test]
    fn what_was_counted_before_is_added_and_dates_the_beginning() {
        let mut counts = Counts::new();
        counts.add("a", 0, Duration::ZERO);
        let earlier = r#"{"since":5,"topics":{"a":{"count":2,"lost":1},"b":{"count":1,"lost":0}},"other":{"count":18446744073709551615,"lost":0}}"#;
        counts.add_all(serde_json::from_str(earlier).unwrap());
        counts.add_all(Totals::default());
        let snapshot = counts.snapshot(Duration::ZERO);
        assert_eq!(snapshot.since, 5);
        assert_eq!((snapshot.topics[0].count, snapshot.topics[0].lost), (3, 1));
        assert_eq!(snapshot.topics[1].per_second_1m, 0.0);
        assert_eq!(snapshot.other.count, u64::MAX);
    }
}

//! Events: those of this Main to other nodes, and of other nodes to this Main. Their numbers show a loss on the way.
//!
//! An event crosses once: what a bridge has published here, no bridge takes from here. So nodes that export all to each other
//! send each event as often as there are nodes, and no more.

mod export;
mod import;
mod retained;

use std::collections::HashMap;

use crate::wire::Count;

pub(crate) use self::{
    export::{Publisher, export},
    import::import,
};

/// Topics of each node that are counted. Events of further topics have no number, so their loss goes unnoticed.
const TOPICS_MAX: usize = 4096;

/// Nodes whose numbers are known.
const NODES_MAX: usize = 1024;

/// Most events that one event can say to be lost before it. A node may lie, and the counts of Main's subscribers must
/// not overflow by that.
const LOST_MAX: u64 = u32::MAX as u64;

/// The numbers that the events of one export get.
#[derive(Debug)]
struct Given {
    life: u64,
    topics: HashMap<Box<str>, u64>,
    /// Events lost before the next one that gets a number, of whichever topic.
    lost: u64,
}

impl Given {
    /// Begins to count. Numbers of different lives cannot be compared.
    fn new(life: u64) -> Self {
        Self { life, topics: HashMap::new(), lost: 0 }
    }

    /// Notes that so many events were lost.
    fn lose(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
    }

    /// The number of the next event of a topic. `None` if other topics have taken all the room.
    fn next(&mut self, topic: &str) -> Option<Count> {
        if !self.topics.contains_key(topic) && self.topics.len() < TOPICS_MAX {
            self.topics.insert(topic.into(), 0);
        }
        let number = self.topics.get_mut(topic)?;
        *number += 1;
        Some(Count { life: self.life, number: *number, lost: std::mem::take(&mut self.lost) })
    }
}

/// The last numbers of other nodes' events. Each node has room of its own, so that none can use up another's.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashMap<Box<str>, Topics>);

/// By topic: the life of the counter, and its last number.
type Topics = HashMap<Box<str>, (u64, u64)>;

impl Seen {
    /// Notes the number of an event, and returns how many are known to be lost before it.
    fn lost(&mut self, node: &str, topic: &str, count: Count) -> u64 {
        self.gap(node, topic, count).saturating_add(count.lost).min(LOST_MAX)
    }

    fn gap(&mut self, node: &str, topic: &str, Count { life, number, .. }: Count) -> u64 {
        if !self.0.contains_key(node) && self.0.len() < NODES_MAX {
            self.0.insert(node.into(), Topics::new());
        }
        let Some(topics) = self.0.get_mut(node) else { return 0 };
        match topics.get_mut(topic) {
            // An event that comes late or twice shows no loss.
            Some((last_life, last)) if *last_life == life => {
                let gap = number.saturating_sub(*last).saturating_sub(1);
                *last = number.max(*last);
                gap
            }
            Some(place) => {
                *place = (life, number);
                0
            }
            None => {
                if topics.len() < TOPICS_MAX {
                    topics.insert(topic.into(), (life, number));
                }
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_a_topic_is_a_loss() {
        let (mut given, mut seen) = (Given::new(7), Seen::default());
        let mut events = (0..10).map(|_| given.next("a").unwrap());
        assert_eq!(seen.lost("hall", "a", events.next().unwrap()), 0);
        assert_eq!(seen.lost("hall", "a", events.nth(3).unwrap()), 3);
        let late = Count { life: 7, number: 2, lost: 0 };
        assert_eq!(seen.lost("hall", "a", late), 0);
        assert_eq!(seen.lost("hall", "a", events.next().unwrap()), 0);
        // Another topic, another node, another life.
        assert_eq!(seen.lost("hall", "b", Count { number: 9, ..late }), 0);
        assert_eq!(seen.lost("hall", "a", Count { life: 8, number: 9, lost: 0 }), 0);
    }

    #[test]
    fn what_the_node_has_lost_is_told_once() {
        let mut given = Given::new(7);
        given.lose(2);
        given.lose(3);
        assert_eq!(given.next("a").unwrap().lost, 5);
        assert_eq!(given.next("a").unwrap().lost, 0);
        assert_eq!(Seen::default().lost("hall", "a", Count { life: 7, number: 1, lost: 5 }), 5);
    }

    #[test]
    fn topics_without_end_take_no_memory_without_end() {
        let (mut given, mut seen) = (Given::new(7), Seen::default());
        for topic in 0..10_000 {
            let topic = topic.to_string();
            given.next(&topic);
            seen.lost("hall", &topic, Count { life: 7, number: 1, lost: 0 });
            seen.lost(&topic, "a", Count { life: 7, number: 1, lost: 0 });
        }
        let shares = seen.0.values().map(HashMap::len);
        assert_eq!(
            (given.topics.len(), shares.max(), seen.0.len()),
            (TOPICS_MAX, Some(TOPICS_MAX), NODES_MAX)
        );
        assert_eq!(given.next("new"), None);
    }

    #[test]
    fn a_node_with_topics_without_end_takes_no_other_nodes_share() {
        let mut seen = Seen::default();
        for topic in 0..10_000 {
            seen.lost("hall", &topic.to_string(), Count { life: 7, number: 1, lost: 0 });
        }
        assert_eq!(seen.lost("attic", "a", Count { life: 9, number: 1, lost: 0 }), 0);
        assert_eq!(seen.lost("attic", "a", Count { life: 9, number: 4, lost: 0 }), 2);
    }

    #[test]
    fn a_lie_about_losses_is_bounded() {
        let mut seen = Seen::default();
        let lie = Count { life: 1, number: u64::MAX, lost: u64::MAX };
        assert_eq!(seen.lost("hall", "a", Count { number: 1, lost: 0, ..lie }), 0);
        assert_eq!(seen.lost("hall", "a", lie), LOST_MAX);
    }
}

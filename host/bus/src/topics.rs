//! The state of each topic: its sequence, its last value if Main retains it, and its counts.
//!
//! Publishers can invent topics without end, so only the last used of the topics that are not configured are kept. A
//! publisher that invents many pushes out its own. A use only marks the topic, which costs one look-up. A marked topic
//! that is next to go loses its mark and moves to the end of its line instead.

use std::{collections::HashMap, sync::Arc};

use lru::LruCache;
use parking_lot::Mutex;
use weir_metrics::PerSecond;
use weir_names::Topic;
use weir_reports::TopicStatus;

use crate::{
    id::PeerId,
    message::{Published, Receipt},
};

/// How many topics are kept besides the retained ones.
const KNOWN: usize = 4096;

/// How many marked topics at most are passed over to find one that goes.
const CHANCES: usize = 16;

/// One topic. It is locked while one of its events is delivered, so order and sequence agree.
#[derive(Debug, Default)]
pub(crate) struct TopicState {
    pub(crate) sequence: u64,
    /// The last event of a retained topic.
    pub(crate) value: Option<Arc<Published>>,
    is_retained: bool,
    delivered: u64,
    shed: u64,
    refused: u64,
    rate: PerSecond,
}

pub(crate) type SharedTopic = Arc<Mutex<TopicState>>;

#[derive(Debug)]
pub(crate) struct Topics(Mutex<TopicTable>);

#[derive(Debug)]
struct TopicTable {
    retained: HashMap<Topic, SharedTopic>,
    known: HashMap<Topic, Known>,
    /// For each publisher, the known topics that it was the first to use, in a line. The least recently used goes next.
    shares: HashMap<PeerId, LruCache<Topic, ()>>,
    /// The greatest sequence of all forgotten topics.
    forgotten: u64,
}

#[derive(Debug)]
struct Known {
    state: SharedTopic,
    /// The publisher that was the first to use the topic.
    first: PeerId,
    /// Whether the topic was used since it came to its place in that publisher's line.
    is_used: bool,
}

impl Default for Topics {
    fn default() -> Self {
        let (retained, known, shares) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self(Mutex::new(TopicTable { retained, known, shares, forgotten: 0 }))
    }
}

impl Topics {
    pub(crate) fn retain(&self, topics: impl IntoIterator<Item = Topic>) {
        let mut table = self.0.lock();
        let mut before = std::mem::take(&mut table.retained);
        for topic in topics {
            let state = before.remove(&topic).unwrap_or_else(|| table.state(&topic, PeerId::MAIN));
            table.forget(&topic);
            state.lock().is_retained = true;
            table.retained.insert(topic, state);
        }
        for (topic, state) in before {
            {
                let mut state = state.lock();
                (state.is_retained, state.value) = (false, None);
            }
            table.keep(topic, state, PeerId::MAIN);
        }
    }

    /// Returns the state of a topic for a publisher. A new topic that nobody hears does not become known, and has none.
    pub(crate) fn get(&self, topic: &Topic, is_heard: bool, publisher: PeerId) -> Option<SharedTopic> {
        let mut table = self.0.lock();
        if let Some(state) = table.retained.get(topic) {
            return Some(state.clone());
        }
        match is_heard {
            true => Some(table.state(topic, publisher)),
            false => table.used(topic),
        }
    }

    /// Returns the last value of each retained topic that has one.
    pub(crate) fn values(&self) -> Vec<Arc<Published>> {
        self.0.lock().retained.values().filter_map(|state| state.lock().value.clone()).collect()
    }

    /// Returns the known topics by name, each with the number of subscriptions that match it.
    pub(crate) fn status(&self, subscriptions: impl Fn(&Topic) -> usize) -> Vec<TopicStatus> {
        let all: Vec<(Topic, SharedTopic)> = {
            let table = self.0.lock();
            let known = table.known.iter().map(|(topic, known)| (topic, &known.state));
            let all = table.retained.iter().chain(known);
            all.map(|(topic, state)| (topic.clone(), state.clone())).collect()
        };
        let mut stats: Vec<_> = all
            .into_iter()
            .map(|(topic, state)| {
                let subscriptions = subscriptions(&topic);
                state.lock().status(topic, subscriptions)
            })
            .collect();
        stats.sort_by(|a, b| a.topic.cmp(&b.topic));
        stats
    }
}

impl TopicTable {
    /// Returns the state of a known topic, and marks the topic as used.
    fn used(&mut self, topic: &Topic) -> Option<SharedTopic> {
        let known = self.known.get_mut(topic)?;
        known.is_used = true;
        Some(known.state.clone())
    }

    /// Returns the state of a topic that is not retained. A new topic becomes known.
    fn state(&mut self, topic: &Topic, publisher: PeerId) -> SharedTopic {
        if let Some(state) = self.used(topic) {
            return state;
        }
        let state = SharedTopic::new(Mutex::new(TopicState {
            // The topic may have been forgotten, and its sequence must not go back.
            sequence: self.forgotten,
            ..TopicState::default()
        }));
        self.keep(topic.clone(), state.clone(), publisher);
        state
    }

    /// Makes a topic known. If [`KNOWN`] topics are known already, forgets one of them.
    fn keep(&mut self, topic: Topic, state: SharedTopic, first: PeerId) {
        if self.known.len() >= KNOWN
            && let Some(longest_unused) = self.gives_way(first)
            && let Some(forgotten) = self.forget(&longest_unused)
        {
            self.forgotten = self.forgotten.max(forgotten.lock().sequence);
        }
        self.shares.entry(first).or_insert_with(LruCache::unbounded).put(topic.clone(), ());
        self.known.insert(topic, Known { state, first, is_used: false });
    }

    /// Returns the topic that gives way: the next one of the publisher with the most topics, the new topic included. On
    /// a tie, a topic of another publisher goes first. The scan is short, because publishers are few.
    fn gives_way(&mut self, publisher: PeerId) -> Option<Topic> {
        let greed = |(first, share): &(&PeerId, &LruCache<Topic, ()>)| {
            let is_own = **first == publisher;
            (share.len() + usize::from(is_own), !is_own, **first)
        };
        let (&first, _) = self.shares.iter().max_by_key(greed)?;
        let share = self.shares.get_mut(&first)?;
        for _ in 0..CHANCES {
            let next = share.peek_lru()?.0.clone();
            let is_used = self.known.get_mut(&next).is_some_and(|known| std::mem::take(&mut known.is_used));
            if !is_used {
                break;
            }
            share.promote(&next);
        }
        share.peek_lru().map(|(topic, ())| topic.clone())
    }

    fn forget(&mut self, topic: &Topic) -> Option<SharedTopic> {
        let Known { state, first, .. } = self.known.remove(topic)?;
        if let Some(share) = self.shares.get_mut(&first) {
            share.pop(topic);
            if share.is_empty() {
                self.shares.remove(&first);
            }
        }
        Some(state)
    }
}

impl TopicState {
    /// Counts an event and what happened to it. A retained topic keeps it as its last value.
    pub(crate) fn note(&mut self, published: &Arc<Published>, receipt: Receipt) {
        self.count(receipt);
        self.rate.add_at(published.at, 1);
        if self.is_retained {
            self.value = Some(published.clone());
        }
    }

    pub(crate) fn count(&mut self, receipt: Receipt) {
        self.delivered += u64::from(receipt.delivered);
        self.shed += u64::from(receipt.shed);
        self.refused += u64::from(receipt.refused);
    }

    fn status(&self, topic: Topic, subscriptions: usize) -> TopicStatus {
        TopicStatus {
            topic,
            sequence: self.sequence,
            rate: self.rate.now(),
            subscriptions,
            delivered: self.delivered,
            shed: self.shed,
            refused: self.refused,
            retain: self.is_retained,
            retained_bytes: self.value.as_ref().map(|value| value.payload.len() as u64),
        }
    }
}

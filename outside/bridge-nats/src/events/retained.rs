//! The last event of each topic, in a key-value bucket of JetStream, for nodes that come later.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use async_nats::{
    HeaderMap,
    jetstream::{self, context::Context as JetStream, kv},
};
use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::{sync::Notify, time};
use weir_peer::{Event, Peer};

use crate::{
    bridge::Links,
    config::Origin,
    link::{Link, NoAnswer},
    shared::{Shared, tell},
};

/// Most topics whose last event one export keeps. Those of further topics are not kept.
pub(super) const TOPICS_MAX: usize = 1024;
/// Most bytes of all last events that one export keeps.
const BYTES_MAX: usize = 8 << 20;

/// From all nodes together, no more is read than this many exports keep.
const NODES_READ: usize = 8;

/// Time for the bucket to take a value, or to give the next one. If it has none for a pattern, it sends nothing at all.
const READ_TIME: Duration = Duration::from_secs(3);

/// The last events of an export. A task of its own brings them to the bucket, so that no event waits for that.
#[derive(Debug, Default)]
pub(super) struct Kept {
    last: Mutex<Last>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Last {
    topics: HashMap<Box<str>, (HeaderMap, Bytes)>,
    bytes: usize,
    /// Topics whose last event is not in the bucket yet. Each is one of the topics.
    waiting: BTreeSet<Box<str>>,
}

impl Kept {
    /// Keeps an event for the bucket.
    pub(super) fn keep(&self, shared: &Shared, event: &Event, headers: HeaderMap) {
        let is_kept = self.last.lock().keep(&event.topic, headers, &event.payload);
        if is_kept {
            self.changed.notify_one();
        } else {
            let topic = &event.topic;
            tell!(
                warn,
                shared.times,
                ("retained topics"),
                "too many retained topics: the last event of `{topic}` is not kept"
            );
        }
    }

    /// Brings all that is kept to the bucket once more: a new link may come with an empty one.
    pub(super) fn put_all(&self) {
        let mut last = self.last.lock();
        last.waiting = last.topics.keys().cloned().collect();
        self.changed.notify_one();
    }

    /// Brings what is kept to the bucket, until the session ends or the bridge drains.
    pub(super) async fn run(&self, shared: &Shared, links: &Links, peer: &Peer) {
        let mut draining = shared.draining();
        loop {
            tokio::select! {
                () = self.changed.notified() => self.put_waiting(shared, links).await,
                _ended = peer.closed() => return,
                () = draining.wait() => return self.put_waiting(shared, links).await,
            }
        }
    }

    async fn put_waiting(&self, shared: &Shared, links: &Links) {
        loop {
            // Without a link nothing is lost: the next link gets all.
            let Some(link) = links.borrow().clone() else { return };
            let Some((topic, (headers, payload))) = self.last.lock().next() else { return };
            put(shared, &link, &topic, &headers, &payload).await;
        }
    }
}

impl Last {
    /// Keeps an event as the last of its topic. False if there is no room. Then an earlier event of the topic is not
    /// kept either.
    fn keep(&mut self, topic: &str, headers: HeaderMap, payload: &Bytes) -> bool {
        self.bytes -= self.topics.remove(topic).map_or(0, |(_, payload)| payload.len());
        let has_room = self.topics.len() < TOPICS_MAX && self.bytes + payload.len() <= BYTES_MAX;
        if has_room {
            self.bytes += payload.len();
            self.topics.insert(topic.into(), (headers, payload.clone()));
            self.waiting.insert(topic.into());
        } else {
            self.waiting.remove(topic);
        }
        has_room
    }

    /// The next event to bring to the bucket, with its topic: always the last of the topic.
    fn next(&mut self) -> Option<(Box<str>, (HeaderMap, Bytes))> {
        let topic = self.waiting.pop_first()?;
        let event = self.topics.get(&topic)?.clone();
        Some((topic, event))
    }
}

/// Brings an event to the bucket. Logs a failure, unless the link has ended.
async fn put(shared: &Shared, link: &Link, topic: &str, headers: &HeaderMap, payload: &Bytes) {
    // The prefix of the domain's API is needed: a leaf node does not pass `$KV` on to another domain.
    let domain = shared.config.nats.as_ref().jetstream_domain.as_ref();
    let api = domain.map(|domain| format!("$JS.{}.API.", domain.as_ref())).unwrap_or_default();
    let subject = format!("{api}$KV.{}.{}.{topic}", shared.subjects.bucket(), shared.subjects.node());
    let put = link.request(subject, headers.clone(), payload.clone(), |_| true);
    let why = match time::timeout(READ_TIME, put).await {
        Ok(Ok(answer)) => crate::jobs::stored(&answer.payload).err().map(|error| error.to_string()),
        // The next link brings it to the bucket.
        Ok(Err(NoAnswer::Ended)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("the server does not answer".to_owned()),
    };
    if let Some(why) = why {
        tell!(warn, shared.times, ("retained {why}"), "the last event of `{topic}` cannot be kept: {why}");
    }
}

/// Makes the bucket, unless it is there.
pub(super) async fn make_bucket(shared: &Shared, link: &Link) -> Result<()> {
    let context = crate::jobs::jetstream(shared, link);
    let bucket = shared.subjects.bucket();
    if context.get_key_value(&bucket).await.is_ok() {
        return Ok(());
    }
    let config = kv::Config { bucket: bucket.clone(), history: 1, ..kv::Config::default() };
    let made = context.create_key_value(config).await;
    made.map(drop).map_err(|error| anyhow!("cannot make the bucket `{bucket}`: {error}"))
}

/// The last events of these nodes on the topics of a pattern: node, topic and payload.
pub(super) async fn read(
    shared: &Arc<Shared>,
    link: &Link,
    from: &[Origin],
    pattern: &str,
) -> Result<Vec<(String, String, Bytes)>> {
    let context: JetStream = crate::jobs::jetstream(shared, link);
    let bucket = shared.subjects.bucket();
    let store = context.get_key_value(&bucket).await;
    let store = store.with_context(|| format!("there is no bucket `{bucket}` yet"))?;
    let keys = from.iter().map(|origin| match origin {
        Origin::Any => format!("*.{pattern}"),
        Origin::Node(node) => format!("{node}.{pattern}"),
    });
    let (mut values, mut shares) = (Vec::new(), Shares::default());
    for key in keys {
        let mut watch = store.watch_with_history(&key).await?;
        // Ends with the last value, or when none comes.
        while let Ok(Some(entry)) = time::timeout(READ_TIME, watch.next()).await {
            let jetstream::kv::Entry { key, value, operation, delta, .. } = entry?;
            if operation == kv::Operation::Put
                && let Some((node, topic)) = key.split_once('.')
                && shares.take(node, value.len())
            {
                // A copy: the value as it came would keep all that came with it in memory.
                values.push((node.to_owned(), topic.to_owned(), Bytes::copy_from_slice(&value)));
            }
            if delta == 0 {
                break;
            }
        }
    }
    if shares.left_out > 0 {
        let left_out = shares.left_out;
        tracing::warn!(left_out, "the bucket `{bucket}` has more last events of `{pattern}` than are read");
    }
    Ok(values)
}

/// How much is read of each node: as much as one export keeps, and of all nodes together as much as eight exports keep.
#[derive(Debug, Default)]
struct Shares {
    /// By node: topics and bytes that were read.
    by_node: HashMap<Box<str>, (usize, usize)>,
    all: (usize, usize),
    left_out: u64,
}

impl Shares {
    /// Whether there is room for a node's value of this many bytes. Counts it as read or as left out.
    fn take(&mut self, node: &str, bytes: usize) -> bool {
        let own = self.by_node.get(node).copied().unwrap_or_default();
        let fits = |(topics, had): (usize, usize), nodes: usize| {
            topics < nodes * TOPICS_MAX && had.saturating_add(bytes) <= nodes * BYTES_MAX
        };
        if !fits(own, 1) || !fits(self.all, NODES_READ) {
            self.left_out += 1;
            return false;
        }
        self.by_node.insert(node.into(), (own.0 + 1, own.1 + bytes));
        self.all = (self.all.0 + 1, self.all.1 + bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_event_of_a_topic_waits_for_the_bucket() {
        let mut last = Last::default();
        for payload in ["1", "2", "3"] {
            assert!(last.keep("a", HeaderMap::new(), &payload.into()));
        }
        assert!(last.keep("b", HeaderMap::new(), &"4".into()));
        let next = [last.next(), last.next(), last.next()]
            .map(|next| next.map(|(topic, (_, payload))| (topic, payload)));
        assert_eq!(next, [Some(("a".into(), "3".into())), Some(("b".into(), "4".into())), None]);
        assert_eq!(last.bytes, 2);
    }

    #[test]
    fn a_node_whose_bucket_has_no_end_takes_its_own_share_alone() {
        let mut shares = Shares::default();
        let read = (0..10 * TOPICS_MAX).filter(|_| shares.take("greedy", 1)).count();
        assert_eq!((read, shares.left_out), (TOPICS_MAX, 9 * TOPICS_MAX as u64));
        assert!(shares.take("other", BYTES_MAX) && !shares.take("other", 1));
        let read = (0..100).filter(|node| shares.take(&node.to_string(), BYTES_MAX)).count();
        assert!(read < NODES_READ && shares.all.1 <= NODES_READ * BYTES_MAX, "{read}");
    }

    #[test]
    fn what_has_no_room_neither_waits_nor_leaves_an_older_event() {
        let mut last = Last::default();
        let large = Bytes::from(vec![0; BYTES_MAX]);
        assert!(last.keep("a", HeaderMap::new(), &large));
        assert!(!last.keep("b", HeaderMap::new(), &"x".into()));
        assert!(!last.keep("a", HeaderMap::new(), &Bytes::from(vec![0; BYTES_MAX + 1])));
        assert_eq!((last.topics.len(), last.bytes, last.next().is_none()), (0, 0, true));
        for topic in 0..2 * TOPICS_MAX {
            last.keep(&topic.to_string(), HeaderMap::new(), &"x".into());
        }
        assert_eq!((last.topics.len(), last.waiting.len(), last.bytes), (TOPICS_MAX, TOPICS_MAX, TOPICS_MAX));
    }
}

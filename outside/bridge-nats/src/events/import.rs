//! Imported topics: events of other nodes that are published here.

use std::{collections::HashSet, sync::Arc};

use anyhow::Result;
use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::{StreamExt, stream::SelectAll};
use tokio::{sync::Mutex, task::JoinSet};
use weir_names::{harmless, rules::is_topic};
use weir_peer::Peer;

use super::retained;
use crate::{
    config::{ImportTopic, Origin},
    link::Link,
    sessions::Sessions,
    shared::{Shared, tell},
    wire::{self, Count},
};

/// Begins to publish the events of all imported topics.
pub(crate) async fn import(sessions: &Sessions, link: &Link, tasks: &mut JoinSet<()>) -> Result<()> {
    let shared = &sessions.shared;
    let Some(peer) = &sessions.events else { return Ok(()) };
    for (pattern, import) in &shared.config.import.topics {
        let pattern = pattern.as_ref().as_str();
        let mut subscribers = SelectAll::new();
        for origin in import.from.as_ref() {
            let node = match origin {
                Origin::Any => None,
                Origin::Node(node) => Some(node),
            };
            subscribers.push(link.client().subscribe(shared.subjects.events(node, pattern)).await?);
        }
        let importer = Importer {
            shared: shared.clone(),
            peer: peer.clone(),
            link: link.clone(),
            pattern: pattern.into(),
            import: import.clone(),
        };
        tasks.spawn(importer.run(subscribers));
    }
    Ok(())
}

/// One imported pattern.
struct Importer {
    shared: Arc<Shared>,
    peer: Peer,
    link: Link,
    pattern: Box<str>,
    import: ImportTopic,
}

impl Importer {
    /// Runs until the link or the session ends, or the bridge drains.
    async fn run(self, mut subscribers: SelectAll<Subscriber>) {
        // Topics with a new event on this link, whose value in the bucket is older.
        let news = Mutex::new(HashSet::new());
        let old = async {
            if self.import.retained {
                self.publish_retained(&news).await;
            }
            std::future::pending::<()>().await;
        };
        let new = async {
            while let Some(message) = subscribers.next().await {
                self.take(message, &news).await;
            }
        };
        let both = async {
            tokio::select! {
                () = new => {}
                () = old => {}
            }
        };
        self.shared.until_over(&self.peer, Box::pin(both)).await;
    }

    async fn take(&self, message: Message, news: &Mutex<HashSet<String>>) {
        let subject = message.subject.as_str();
        let Some((node, topic)) = self.shared.subjects.parse_event(subject) else {
            return self.refuse("a malformed subject", subject);
        };
        // The subscriptions bring the bridge's own events, too.
        if node == self.shared.subjects.node() {
            return;
        }
        let headers = message.headers.as_ref();
        // A message without this header may be an answer that a bridge was tricked into sending here.
        let claimed = wire::header(headers, wire::NODE).unwrap_or_default();
        if claimed != node {
            return self.refuse(&format!("node `{node}` claims to be `{}`", harmless(claimed, 64)), subject);
        }
        if self.import.retained {
            let mut news = news.lock().await;
            if news.len() < super::retained::TOPICS_MAX {
                news.insert(format!("{node}.{topic}"));
            }
        }
        let lost = Count::read(headers).map_or(0, |count| self.shared.seen.lock().lost(node, topic, count));
        self.publish(node, topic, lost, message.payload).await;
    }

    async fn publish(&self, node: &str, topic: &str, lost: u64, payload: Bytes) {
        if lost > 0 {
            tell!(
                warn,
                self.shared.strangers,
                ("lost {node}"),
                lost,
                "events of node `{node}` were lost before one of `{topic}`"
            );
        }
        // Waits for the receipt, and so keeps the order. Meanwhile other events wait in the client of NATS. Those that
        // find no room there are lost.
        if let Err(error) = self.peer.publish_after(lost, topic, payload).await
            && self.peer.ended().is_none()
        {
            tell!(
                error,
                self.shared.times,
                ("import {}: {}", self.pattern, error.case()),
                "cannot publish an event on `{topic}`, which is imported: {error}"
            );
        }
    }

    /// Publishes the last events of topics on which nothing new has come.
    async fn publish_retained(&self, news: &Mutex<HashSet<String>>) {
        let from = self.import.from.as_ref();
        let values = match retained::read(&self.shared, &self.link, from, &self.pattern).await {
            Ok(values) => values,
            Err(error) => {
                tracing::info!("no last events of `{}`: {error:#}", self.pattern);
                return;
            }
        };
        for (node, topic, payload) in values {
            let is_old = news.lock().await.contains(&format!("{node}.{topic}"));
            if node != self.shared.subjects.node() && is_topic(&topic) && !is_old {
                self.publish(&node, &topic, 0, payload).await;
            }
        }
    }

    fn refuse(&self, why: &str, subject: &str) {
        self.shared.refuse(format_args!("an event for `{}`", self.pattern), why, subject);
    }
}

//! Exported topics: events of this Main that other nodes may get.

use std::{sync::Arc, time::Duration};

use async_nats::HeaderMap;
use tokio::{task::JoinSet, time};
use weir_peer::{Event, Peer, Subscription};

use super::{Given, retained::Kept};
use crate::{
    bridge::Links,
    config::ExportTopic,
    link::Link,
    sessions::Sessions,
    shared::{Shared, tell},
    wire,
};

/// The time until a pattern that Main refused is subscribed to again: the operator may have granted it.
const AGAIN: Duration = Duration::from_secs(5);

/// Begins to take the events of all exported topics. Returns once it has subscribed to all that Main allows.
pub(crate) async fn export(sessions: &Sessions, links: &Links, tasks: &mut JoinSet<()>) -> Publisher {
    let shared = &sessions.shared;
    let mut publisher = Publisher::default();
    let Some(peer) = &sessions.events else { return publisher };
    for (pattern, export) in &shared.config.export.topics {
        let kept = export.retained.then(Arc::<Kept>::default);
        if let Some(kept) = kept.clone() {
            publisher.kept.push(kept.clone());
            let (shared, links, peer) = (shared.clone(), links.clone(), peer.clone());
            tasks.spawn(async move { kept.run(&shared, &links, &peer).await });
        }
        let mut exporter = Exporter {
            shared: shared.clone(),
            peer: peer.clone(),
            links: links.clone(),
            pattern: pattern.as_ref().as_str().into(),
            export: export.clone(),
            numbers: Given::new(sessions.life),
            kept,
        };
        let subscription = exporter.subscribe().await;
        tasks.spawn(async move { exporter.run(subscription).await });
    }
    publisher.shared = Some(shared.clone());
    publisher
}

/// What is kept of all exported topics.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    shared: Option<Arc<Shared>>,
    kept: Vec<Arc<Kept>>,
}

impl Publisher {
    /// Makes the bucket on a new link, unless it is there, and has all last events brought to it.
    pub(crate) async fn refresh(&self, link: &Link) {
        let Some(shared) = &self.shared else { return };
        if self.kept.is_empty() {
            return;
        }
        if let Err(error) = super::retained::make_bucket(shared, link).await {
            tracing::error!("cannot keep last events: {error:#}");
            return;
        }
        self.kept.iter().for_each(|kept| kept.put_all());
    }
}

/// One exported pattern.
struct Exporter {
    shared: Arc<Shared>,
    peer: Peer,
    links: Links,
    pattern: Box<str>,
    export: ExportTopic,
    numbers: Given,
    kept: Option<Arc<Kept>>,
}

impl Exporter {
    async fn subscribe(&self) -> Option<Subscription> {
        let pattern = &self.pattern;
        let refused = |error: &_| {
            tell!(
                error,
                self.shared.times,
                ("subscribe {pattern}"),
                "cannot subscribe to `{pattern}`, which is exported: {error}"
            );
        };
        self.peer.subscribe(pattern).await.inspect_err(refused).ok()
    }

    /// Runs until the session ends or the bridge drains.
    async fn run(&mut self, mut subscription: Option<Subscription>) {
        let mut draining = self.shared.draining();
        loop {
            while let Some(events) = &mut subscription {
                tokio::select! {
                    event = events.next() => match event {
                        Some(event) => self.take(event).await,
                        None => subscription = None,
                    },
                    () = draining.wait() => return,
                }
            }
            tokio::select! {
                () = time::sleep(AGAIN) => subscription = self.subscribe().await,
                () = draining.wait() => return,
            }
        }
    }

    async fn take(&mut self, event: Event) {
        self.numbers.lose(event.lost);
        if Shared::is_bridge(&event.sender) || !self.export.senders.iter().any(|own| own.is(&event.sender)) {
            return;
        }
        let Some(subject) = self.shared.subjects.event(&event.topic) else { return };
        let headers = wire::headers(&self.shared.subjects, &event.sender);
        let link = self.links.borrow().clone();
        // The last value of a topic, from before this session, is no new event.
        if !event.retained {
            self.publish(link.as_ref(), &event, subject, headers.clone()).await;
        }
        if let Some(kept) = &self.kept {
            kept.keep(&self.shared, &event, headers);
        }
    }

    async fn publish(&mut self, link: Option<&Link>, event: &Event, subject: String, mut headers: HeaderMap) {
        // Events are numbered without a link, too, so that the next one that crosses shows the gap.
        if let Some(count) = self.numbers.next(&event.topic) {
            headers.insert(wire::COUNT, count.written());
        }
        if let Some(link) = link
            && let Err(error) =
                link.client().publish_with_headers(subject, headers, event.payload.clone()).await
            && !link.has_ended()
        {
            let (pattern, topic) = (&self.pattern, &event.topic);
            tell!(
                warn,
                self.shared.times,
                ("publish {pattern}"),
                "an event of `{topic}` cannot cross: {error}"
            );
        }
    }
}

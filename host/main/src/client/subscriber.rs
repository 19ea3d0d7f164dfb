//! Subscriptions of the embedding program.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use weir_bus::{
    Bus, Error, Event, Inbox, InboxLimits, Incoming, LaneSettings, ReaderId, Subscription, Taken,
};
use weir_names::Topic;

use super::options::SubscribeOptions;

/// A received event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReceivedEvent {
    /// Its topic.
    pub topic: Topic,
    /// The publishing extension's id, or `main`.
    pub sender: String,
    /// Its number in the topic, greater than the one before.
    pub sequence: u64,
    /// Events of this subscription lost just before it.
    pub lost: u64,
    /// Whether it is a retained value, published before the subscription began.
    pub retained: bool,
    /// The payload.
    #[serde(skip)]
    pub payload: Bytes,
}

/// A subscription of Main, until dropped.
#[derive(Debug)]
pub struct Subscriber {
    bus: Arc<Bus>,
    inbox: Arc<Inbox>,
    subscription: Arc<Subscription>,
}

impl Subscriber {
    pub(super) fn new(bus: Arc<Bus>, pattern: &str, options: SubscribeOptions) -> Result<Self, Error> {
        let SubscribeOptions { policy, messages, bytes } = options;
        let inbox = Arc::new(Inbox::new(InboxLimits { messages: messages.max(1), bytes }));
        let delivery = LaneSettings { policy, messages: u32::MAX, bytes: u64::MAX };
        let subscription = bus.subscribe(bus.main(), &inbox, pattern, Some(delivery))?;
        Ok(Self { bus, inbox, subscription })
    }

    /// Waits for the next event. None once Main has ended. Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<ReceivedEvent> {
        loop {
            match self.inbox.take(ReaderId::FIRST) {
                Taken::Message(Incoming::Event(event)) => return Some(self.received(&event)),
                Taken::Stop => return None,
                _ => self.inbox.readable(ReaderId::FIRST).await,
            }
        }
    }

    fn received(&self, event: &Event) -> ReceivedEvent {
        let Event { lost, retained, published, .. } = event;
        ReceivedEvent {
            topic: published.topic.clone(),
            sender: self.bus.peer(published.sender).map(|peer| peer.name().to_owned()).unwrap_or_default(),
            sequence: published.sequence,
            lost: *lost,
            retained: *retained,
            payload: published.payload.clone(),
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // Fails only if the subscription has ended already.
        let _ended = self.bus.unsubscribe(self.bus.main(), self.subscription.number());
    }
}

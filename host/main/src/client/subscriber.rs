//! Subscriptions of the embedding program.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use weir_bus::{
    Bus, Error, Event, Inbox, InboxLimits, Incoming, InstanceId, LaneSettings, Subscription, Taken,
};
use weir_names::Topic;

use super::{Client, options::SubscribeOptions};

/// A received event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReceivedEvent {
    /// The topic of the event.
    pub topic: Topic,
    /// The publishing extension's id, a peer's name, or `main`.
    pub sender: String,
    /// The number of the event, which rises with each event of the topic. 0 if it was published to this client alone.
    pub sequence: u64,
    /// Events of this subscription lost just before it.
    pub lost: u64,
    /// Whether it is a retained value, published before the subscription began.
    pub retained: bool,
    /// The payload.
    #[serde(skip)]
    pub payload: Bytes,
}

/// A subscription, which ends when this is dropped.
#[derive(Debug)]
pub struct Subscriber {
    client: Client,
    inbox: Arc<Inbox>,
    subscription: Arc<Subscription>,
}

impl Subscriber {
    pub(super) fn new(client: &Client, pattern: &str, options: SubscribeOptions) -> Result<Self, Error> {
        let SubscribeOptions { policy, messages, bytes } = options;
        let mut limits = InboxLimits { messages: messages.max(1), bytes };
        let mut delivery = Some(LaneSettings { policy, messages: u32::MAX, bytes: u64::MAX });
        if client.session.is_some() {
            let own = client.peer.limits().inbox;
            limits = InboxLimits { messages: limits.messages.min(own.messages), bytes: bytes.min(own.bytes) };
            delivery = None;
        }
        let inbox = Arc::new(Inbox::new(limits));
        let subscription = client.bus.subscribe(&client.peer, &inbox, pattern, delivery)?;
        Ok(Self { client: client.clone(), inbox, subscription })
    }

    /// Waits for the next event. None once Main or a peer's session has ended, or the operator took back the grant.
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<ReceivedEvent> {
        loop {
            match self.inbox.take(InstanceId::FIRST) {
                Taken::Message(Incoming::Event(event)) => return Some(received(&self.client.bus, &event)),
                Taken::Stop => return None,
                _ => self.inbox.readable(InstanceId::FIRST).await,
            }
        }
    }
}

/// An event with the name of its publisher.
pub(crate) fn received(bus: &Bus, event: &Event) -> ReceivedEvent {
    let Event { lost, retained, published, .. } = event;
    ReceivedEvent {
        topic: published.topic.clone(),
        sender: bus.peer(published.sender).map(|peer| peer.name().to_owned()).unwrap_or_default(),
        sequence: published.sequence,
        lost: *lost,
        retained: *retained,
        payload: published.payload.clone(),
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // Fails only if the subscription has ended already.
        let _ended = self.client.bus.unsubscribe(&self.client.peer, self.subscription.number());
    }
}

//! Events: published under a topic, received by every subscriber.

use std::{fmt, sync::Arc};

use bytes::Bytes;

use crate::session::{Handle, Mailbox};

/// An event, with the envelope that Main stamped on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The topic.
    pub topic: String,
    /// The publisher. It cannot be forged.
    pub sender: String,
    /// Rises with each event of the topic. 0 for an event published to this peer alone.
    pub sequence: u64,
    /// Events of this subscription that were lost just before this one.
    pub lost: u64,
    /// Whether it is the last value of a topic that Main retains, published before the session subscribed.
    pub retained: bool,
    /// The published bytes.
    pub payload: Bytes,
}

/// What happened to an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Subscriptions that have it in their inbox.
    pub delivered: u32,
    /// Events lost for want of room: this one, or older ones in its place.
    pub shed: u32,
    /// Subscriptions that refused it for want of room, or where it waited in vain.
    pub refused: u32,
}

impl Receipt {
    /// Reads the payload of the answer to `Publish`. `None` if it is too short.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let mut numbers = payload.as_chunks().0.iter().copied().map(u32::from_le_bytes);
        Some(Self { delivered: numbers.next()?, shed: numbers.next()?, refused: numbers.next()? })
    }
}

/// The events of a subscription. Dropped, it ends the subscription.
///
/// Reading it gives Main credit for more. All subscriptions of a session share one credit, [`Options::events`]: a slow
/// reader of one holds up the others. If that matters, give it a session of its own.
///
/// [`Options::events`]: crate::Options::events
#[must_use = "dropped, it ends the subscription"]
pub struct Subscription {
    handle: Handle,
    number: u32,
    events: Arc<Mailbox<Event>>,
}

impl Subscription {
    pub(crate) fn new(handle: Handle, number: u32, events: Arc<Mailbox<Event>>) -> Self {
        Self { handle, number, events }
    }

    /// The next event. `None` once the operator has taken the grant back or the session has ended, and what had come is
    /// read. A future that is dropped loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.events.next().await?;
        self.handle.renew_credit(1);
        Some(event)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.handle.unsubscribe(self.number);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("number", &self.number).finish_non_exhaustive()
    }
}

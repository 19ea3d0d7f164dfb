//! Topics: who subscribed to what, and what was published.

use super::{EXTENSION, Host, Message, TEST, number_of};
use crate::{
    Error, Receipt,
    host::{Event, Peer},
    names,
    testing::Published,
};

pub(super) struct Subscription {
    pattern: String,
    events: u64,
}

impl Host {
    pub(crate) fn subscribe(&self, pattern: &str) -> Result<u32, Error> {
        if !names::is_topic_pattern(pattern) {
            return Err(Error::Invalid(format!("`{pattern}` is not a topic pattern")));
        }
        self.granted("subscribe to", "subscribes", self.0.manifest.subscribes, pattern)?;
        let mut subscriptions = self.0.subscriptions.borrow_mut();
        if let Some(known) = subscriptions.iter().position(|known| known.pattern == pattern) {
            return number_of(known);
        }
        subscriptions.push(Subscription { pattern: pattern.to_owned(), events: 0 });
        number_of(subscriptions.len() - 1)
    }

    pub(crate) fn publish(&self, to: Option<&str>, topic: &str, payload: &[u8]) -> Result<Receipt, Error> {
        if !names::is_topic(topic) {
            return Err(Error::Invalid(format!("`{topic}` is not a topic")));
        }
        self.granted("publish", "publishes", self.0.manifest.publishes, topic)?;
        self.check_size(payload)?;
        self.0.published.borrow_mut().push(Published {
            topic: topic.to_owned(),
            to: to.map(str::to_owned),
            payload: payload.to_owned(),
        });
        let delivered = if to.is_none_or(|to| to == self.own_name()) {
            self.deliver(EXTENSION, topic, payload, 0)
        } else {
            1
        };
        Ok(Receipt { delivered, shed: 0 })
    }

    /// Hands an event to every subscription that it matches; how many those are.
    pub(crate) fn deliver(&self, sender: Peer, topic: &str, payload: &[u8], lost: u64) -> u32 {
        let mut delivered = 0;
        for (number, subscription) in (0..).zip(self.0.subscriptions.borrow_mut().iter_mut()) {
            if !names::covers(&subscription.pattern, topic) {
                continue;
            }
            subscription.events += lost + 1;
            delivered += 1;
            self.0.inbox.borrow_mut().push(Message::Event(Event {
                sender,
                subscription: number,
                topic: (subscription.pattern != topic).then(|| topic.to_owned()),
                sequence: subscription.events,
                lost,
                waited_us: 0,
                payload: payload.to_owned(),
            }));
        }
        delivered
    }

    pub(crate) fn deliver_from_test(&self, topic: &str, payload: &[u8], lost: u64) -> u32 {
        self.deliver(TEST, topic, payload, lost)
    }

    pub(crate) fn take_published(&self) -> Vec<Published> {
        self.0.published.take()
    }

    fn granted(&self, verb: &str, key: &str, grants: &[&str], pattern: &str) -> Result<(), Error> {
        if grants.iter().any(|grant| names::covers(grant, pattern)) {
            return Ok(());
        }
        let id = self.0.manifest.id;
        Err(Error::PermissionDenied(format!("`{id}` may not {verb} `{pattern}`; `{key}` would grant it")))
    }
}

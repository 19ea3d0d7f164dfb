//! The topics of Main in memory: subscriptions, events, and retained values.

use weir_names::rules;

use super::{EXTENSION, Host, Message, TEST, number_of};
use crate::{
    Error, Receipt,
    host::{Event, Options, Peer},
    testing::Published,
};

#[derive(Default)]
pub(super) struct Topic {
    events: u64,
    /// The last value, if Main retains the topic.
    retained: Option<Vec<u8>>,
}

impl Host {
    pub(crate) fn subscribe(&self, pattern: &str) -> Result<u32, Error> {
        if !rules::is_topic_pattern(pattern) {
            return Err(Error::Invalid(format!("`{pattern}` is not a topic pattern")));
        }
        self.granted("subscribe to", "subscribes", self.0.manifest.subscribes, pattern)?;
        let mut subscriptions = self.0.subscriptions.borrow_mut();
        if let Some(known) = subscriptions.iter().position(|known| known.as_deref() == Some(pattern)) {
            return number_of(known);
        }
        let number = number_of(subscriptions.len())?;
        subscriptions.push(Some(pattern.to_owned()));
        for (name, topic) in self.0.topics.borrow().iter() {
            if let Some(payload) = &topic.retained
                && rules::covers(pattern, name)
            {
                let event = Event { retained: true, ..event(TEST, topic.events, 0, payload) };
                self.push_event(number, pattern, name, event);
            }
        }
        Ok(number)
    }

    pub(crate) fn unsubscribe(&self, subscription: u32) -> Result<(), Error> {
        let place = usize::try_from(subscription).unwrap_or(usize::MAX);
        match self.0.subscriptions.borrow_mut().get_mut(place).and_then(Option::take) {
            Some(_) => self.0.inbox.borrow_mut().drop_events(subscription),
            None => return Err(Error::Invalid(format!("there is no subscription {subscription}"))),
        }
        Ok(())
    }

    pub(crate) fn publish(
        &self,
        to: Option<&str>,
        topic: &str,
        payload: &[u8],
        _options: Options,
    ) -> Result<Receipt, Error> {
        if !rules::is_topic(topic) {
            return Err(Error::Invalid(format!("`{topic}` is not a topic")));
        }
        self.granted("publish", "publishes", self.0.manifest.publishes, topic)?;
        self.check_size(payload)?;
        self.0.published.borrow_mut().push(Published {
            topic: topic.to_owned(),
            to: to.map(str::to_owned),
            payload: payload.to_owned(),
        });
        let delivered = match to {
            None => self.deliver(EXTENSION, topic, payload, 0),
            Some(to) if to == self.own_name() => self.hand_out(topic, &event(EXTENSION, 0, 0, payload)),
            Some(_) => 1,
        };
        Ok(Receipt { delivered, shed: 0, refused: 0 })
    }

    /// Publishes an event to every matching subscription, after `lost` events that reached none. Returns the number of
    /// those subscriptions.
    fn deliver(&self, sender: Peer, topic: &str, payload: &[u8], lost: u64) -> u32 {
        let sequence = {
            let mut topics = self.0.topics.borrow_mut();
            let known = topics.entry(topic.to_owned()).or_default();
            known.events += lost + 1;
            if let Some(retained) = &mut known.retained {
                *retained = payload.to_owned();
            }
            known.events
        };
        self.hand_out(topic, &event(sender, sequence, lost, payload))
    }

    /// Puts an event into the inbox once for each matching subscription. Returns the number of those subscriptions.
    fn hand_out(&self, topic: &str, event: &Event) -> u32 {
        let subscriptions = self.0.subscriptions.borrow();
        let live =
            (0..).zip(&*subscriptions).filter_map(|(number, pattern)| Some((number, pattern.as_deref()?)));
        live.filter(|(_, pattern)| rules::covers(pattern, topic))
            .map(|(number, pattern)| self.push_event(number, pattern, topic, event.clone()))
            .fold(0, |count, ()| count + 1)
    }

    fn push_event(&self, subscription: u32, pattern: &str, topic: &str, event: Event) {
        let topic = (pattern != topic).then(|| topic.to_owned());
        self.0.inbox.borrow_mut().push(Message::Event(Event { subscription, topic, ..event }));
    }

    pub(crate) fn retain(&self, topic: &str, payload: &[u8]) {
        let mut topics = self.0.topics.borrow_mut();
        let known = topics.entry(topic.to_owned()).or_default();
        known.events += 1;
        known.retained = Some(payload.to_owned());
    }

    pub(crate) fn deliver_from_test(&self, topic: &str, payload: &[u8], lost: u64) -> u32 {
        self.deliver(TEST, topic, payload, lost)
    }

    pub(crate) fn take_published(&self) -> Vec<Published> {
        self.0.published.take()
    }

    fn granted(&self, verb: &str, key: &str, grants: &[&str], pattern: &str) -> Result<(), Error> {
        if grants.iter().any(|grant| rules::covers(grant, pattern)) {
            return Ok(());
        }
        let id = self.0.manifest.id;
        Err(Error::PermissionDenied(format!("`{id}` may not {verb} `{pattern}`; `{key}` would grant it")))
    }
}

fn event(sender: Peer, sequence: u64, lost: u64, payload: &[u8]) -> Event {
    Event {
        sender,
        subscription: 0,
        topic: None,
        sequence,
        lost,
        retained: false,
        waited_us: 0,
        payload: payload.to_owned(),
    }
}

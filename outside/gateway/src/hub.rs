//! Subscriptions that connections share: one on the bus for each pattern, and one encoding of an event for all
//! connections that hear it in the same form.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use weir_host::{
    Error,
    client::ReceivedEvent,
    config::SubscribeGrant,
    names::{PeerName, TopicPattern},
    peers::{PeerConfig, PeerError, PeerMessage, Peers, Session, SessionEnd, Wanted},
};

use crate::{
    outbox::{Body, Encoded, Outbox},
    rpc,
};

/// The name of the session with the shared subscriptions, as `weir topics` shows it.
pub(crate) const NAME: &str = "gateway:events";

/// Most patterns of all connections together.
const PATTERNS: u32 = 4096;

/// Most patterns of all sessions of one name together, unless one session alone may have more: so one name leaves
/// others room.
const SHARE: usize = 256;

/// Most bytes of a message, and of all messages that wait for the hub. A message of an extension may have no more, so
/// none is too large for the hub alone.
const BYTES: u64 = 64 << 20;

/// Most messages that may wait for the hub.
const MESSAGES: u32 = 65_536;

/// Events that the hub hands out before the connections get a turn.
const AT_ONCE: usize = 16;

/// How a connection hears the events of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a notification `events.event`, with the topic, the sender and the number beside the payload.
    Event,
    /// As a notification of this name, with the payload alone.
    Alias(Arc<str>),
    /// The payload alone, on a stream.
    Raw,
}

/// All shared subscriptions.
#[derive(Debug)]
pub(crate) struct Hub {
    session: Session,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the bus's number of the subscription.
    shared: HashMap<u32, Shared>,
    /// By pattern: the bus's number of its subscription.
    numbers: HashMap<Arc<str>, u32>,
    /// By name: its patterns, and how many of its subscriptions have each.
    names: HashMap<PeerName, HashMap<Arc<str>, usize>>,
}

#[derive(Debug)]
struct Shared {
    pattern: Arc<str>,
    groups: Vec<Group>,
}

/// The connections that hear the events in one form.
#[derive(Debug)]
struct Group {
    form: Form,
    /// The outbox of each connection, and its own number of the subscription.
    members: Vec<(Arc<Outbox>, u32)>,
}

impl Hub {
    pub(crate) fn new(peers: &Peers) -> Result<Arc<Self>, PeerError> {
        let mut config = PeerConfig::new(NAME.parse().map_err(Error::invalid_argument)?);
        let everything: TopicPattern = ">".parse().map_err(Error::invalid_argument)?;
        config.subscribes = vec![SubscribeGrant::from(everything)];
        config.limits.sessions = 1;
        config.limits.subscriptions = PATTERNS;
        (config.limits.message_size, config.limits.inbox_bytes) = (BYTES, BYTES);
        config.limits.inbox_messages = MESSAGES;
        Ok(Arc::new(Self { session: peers.open_of_main(config)?, state: Mutex::default() }))
    }

    /// Brings events to the connections until Main ends.
    ///
    /// # Errors
    ///
    /// If the session of the hub ends before Main does.
    pub(crate) async fn run(&self) -> Result<(), String> {
        let wanted = Wanted { requests: false, events: true };
        let mut at_once = 0;
        while let Some(message) = self.session.next(wanted).await {
            if let PeerMessage::Event(number, event) = message {
                self.dispatch(number, &event);
            }
            at_once = (at_once + 1) % AT_ONCE;
            if at_once == 0 {
                tokio::task::yield_now().await;
            }
        }
        match self.session.ended().await {
            SessionEnd::Stopping => Ok(()),
            _ => Err(format!("its session `{NAME}` has ended")),
        }
    }

    /// Subscribes a connection, if its `session` has the grant and room. The retained values come first. A subscription
    /// with this pattern and form that is there already goes on, and gets no retained values again.
    pub(crate) fn join(
        &self,
        session: &Session,
        outbox: &Arc<Outbox>,
        pattern: &str,
        form: Form,
    ) -> Result<(), Error> {
        if outbox.find(pattern, &form).is_some() {
            return session.may_subscribe(pattern);
        }
        session.may_subscribe(pattern)?;
        let (used, allowed) = (outbox.len() as u64 + 1, u64::from(session.limits().subscriptions));
        if used > allowed {
            return Err(Error::LimitExceeded { name: "subscriptions".into(), used, allowed });
        }
        let (pattern, own) = {
            let state = &mut *self.state.lock();
            let share = SHARE.max(usize::try_from(session.limits().subscriptions).unwrap_or(usize::MAX));
            state.check_share(outbox.name(), pattern, share)?;
            let number = match state.numbers.get(pattern) {
                Some(number) => *number,
                None => {
                    let number = self.session.subscribe(pattern).map_err(|error| match error {
                        // The limit is that of the hub, and the app cannot do anything about it.
                        Error::LimitExceeded { .. } => Error::Overloaded(NAME.to_owned()),
                        error => error,
                    })?;
                    let pattern = Arc::<str>::from(pattern);
                    state.numbers.insert(pattern.clone(), number);
                    state.shared.insert(number, Shared { pattern, groups: Vec::new() });
                    number
                }
            };
            let Some(shared) = state.shared.get_mut(&number) else { return Err(Error::PeerGone) };
            let pattern = shared.pattern.clone();
            let of_name = state.names.entry(outbox.name().clone()).or_default();
            *of_name.entry(pattern.clone()).or_default() += 1;
            let own = outbox.add(pattern.clone(), form.clone());
            let member = (outbox.clone(), own);
            match shared.groups.iter_mut().find(|group| group.form == form) {
                Some(group) => group.members.push(member),
                None => shared.groups.push(Group { form: form.clone(), members: vec![member] }),
            }
            (pattern, own)
        };
        // The connection is a member already, so no event is lost after the retained values were read.
        let retained = session.client().retained(&pattern).inspect_err(|_| {
            self.leave(outbox, &pattern, &form);
        })?;
        for event in &retained {
            outbox.push_retained(own, encode(event, &pattern, &form));
        }
        Ok(())
    }

    /// Ends a connection's subscription. False if it has no such subscription.
    pub(crate) fn leave(&self, outbox: &Arc<Outbox>, pattern: &str, form: &Form) -> bool {
        let Some(own) = outbox.find(pattern, form) else { return false };
        outbox.remove(own);
        let mut state = self.state.lock();
        state.leave(outbox.name(), pattern);
        let Some(number) = state.numbers.get(pattern).copied() else { return true };
        let Some(shared) = state.shared.get_mut(&number) else { return true };
        for group in shared.groups.iter_mut().filter(|group| group.form == *form) {
            group.members.retain(|(other, number)| !Arc::ptr_eq(other, outbox) || *number != own);
        }
        shared.groups.retain(|group| !group.members.is_empty());
        if shared.groups.is_empty() {
            state.shared.remove(&number);
            state.numbers.remove(pattern);
            // `unsubscribe` fails only once Main ends.
            let _ended = self.session.unsubscribe(number);
        }
        true
    }

    /// Ends all subscriptions of a connection.
    pub(crate) fn leave_all(&self, outbox: &Arc<Outbox>) {
        outbox.clear();
        for (pattern, form) in outbox.subscriptions() {
            self.leave(outbox, &pattern, &form);
        }
    }

    fn dispatch(&self, number: u32, event: &ReceivedEvent) {
        // Each connection gets retained values on its own, when it joins. An event for one receiver has no number, and
        // is for no app.
        if event.retained || event.sequence == 0 {
            return;
        }
        let state = self.state.lock();
        let Some(Shared { pattern, groups }) = state.shared.get(&number) else { return };
        for Group { form, members } in groups {
            let encoded = Arc::new(encode(event, pattern, form));
            for (outbox, own) in members {
                outbox.push(*own, &encoded, event.lost);
            }
        }
    }
}

impl State {
    /// Fails if the pattern is new to the name, and the name has `share` patterns already.
    fn check_share(&self, name: &PeerName, pattern: &str, share: usize) -> Result<(), Error> {
        match self.names.get(name) {
            Some(own) if own.len() >= share && !own.contains_key(pattern) => {
                let (used, allowed) = (own.len() as u64 + 1, share as u64);
                Err(Error::LimitExceeded { name: "patterns".into(), used, allowed })
            }
            _ => Ok(()),
        }
    }

    /// Notes that one subscription of the name to this pattern has ended.
    fn leave(&mut self, name: &PeerName, pattern: &str) {
        let Some(own) = self.names.get_mut(name) else { return };
        if let Some(subscriptions) = own.get_mut(pattern) {
            *subscriptions -= 1;
            if *subscriptions == 0 {
                own.remove(pattern);
            }
        }
        if own.is_empty() {
            self.names.remove(name);
        }
    }
}

fn encode(event: &ReceivedEvent, pattern: &str, form: &Form) -> Encoded {
    let ReceivedEvent { topic, sender, sequence, retained, payload, .. } = event;
    let mut text = String::new();
    let body = match form {
        Form::Raw => Body::Raw(payload.clone()),
        Form::Alias(method) => {
            rpc::write_alias_event(&mut text, method, payload);
            Body::Text(text.into())
        }
        Form::Event => {
            let topic = topic.as_str();
            rpc::write_event(&mut text, pattern, topic, *sequence, *retained, sender, payload);
            Body::Text(text.into())
        }
    };
    Encoded::new(event, body)
}

//! Events that wait for one connection: bounded by bytes, with an exact count of those lost.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use weir_host::{
    client::ReceivedEvent,
    names::{PeerName, Topic},
};

use crate::{WhenSlow, hub::Form};

/// Bytes that a waiting event counts beside its body: its entry in the queue, its [`Encoded`], and with the policy
/// `latest` the entry of its topic, each with the unused capacity around it.
const OVERHEAD: usize = 256;

/// An event in the form of some subscriptions, shared by all of them.
#[derive(Debug)]
pub(crate) struct Encoded {
    topic: Topic,
    sequence: u64,
    /// Bytes of the payload.
    payload: usize,
    body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A message for a WebSocket.
    Text(Utf8Bytes),
    /// A payload for a stream.
    Raw(Bytes),
}

/// The next event for a connection.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) pattern: Arc<str>,
    /// Events of the subscription lost just before it.
    pub(crate) lost: u64,
    pub(crate) body: Body,
}

/// The subscriptions of one connection, and the events that wait for it.
#[derive(Debug)]
pub(crate) struct Outbox {
    name: PeerName,
    when_slow: WhenSlow,
    max_bytes: usize,
    /// Most bytes of a payload: `limits.message-size`. An event with a larger one is lost.
    max_payload: usize,
    state: Mutex<State>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    last: u32,
    subscriptions: HashMap<u32, Subscription>,
    waiting: VecDeque<Waiting>,
    /// With the policy `latest`: the place of the event of each topic that waits for a subscription.
    latest: HashMap<(u32, Topic), u64>,
    last_place: u64,
    /// What the waiting events count.
    bytes: usize,
    /// Lost events that are not yet in the session's counts.
    uncounted: u32,
    is_overrun: bool,
}

#[derive(Debug)]
struct Subscription {
    pattern: Arc<str>,
    form: Form,
    /// By topic: the number of the retained value that came when the subscription began. The hub may bring the same
    /// events once more.
    retained: HashMap<Topic, u64>,
    /// Events lost before the oldest one that waits.
    lost_before: u64,
    /// Events lost after the newest one that waits.
    lost_after: u64,
}

#[derive(Debug)]
struct Waiting {
    subscription: u32,
    /// A number that is greater than that of the event before it.
    place: u64,
    /// Events of the subscription lost between its event before this one and this one.
    lost: u64,
    event: Arc<Encoded>,
}

impl Encoded {
    pub(crate) fn new(event: &ReceivedEvent, body: Body) -> Self {
        let ReceivedEvent { topic, sequence, payload, .. } = event;
        Self { topic: topic.clone(), sequence: *sequence, payload: payload.len(), body }
    }

    fn bytes(&self) -> usize {
        OVERHEAD
            + match &self.body {
                Body::Text(text) => text.len(),
                Body::Raw(bytes) => bytes.len(),
            }
    }
}

impl Outbox {
    pub(crate) fn new(
        name: PeerName,
        when_slow: WhenSlow,
        max_bytes: usize,
        max_payload: usize,
    ) -> Arc<Self> {
        let (state, waker) = (Mutex::default(), AtomicWaker::new());
        Arc::new(Self { name, when_slow, max_bytes, max_payload, state, waker })
    }

    /// The name of its session.
    pub(crate) fn name(&self) -> &PeerName {
        &self.name
    }

    /// The subscription with this pattern and form, if there is one.
    pub(crate) fn find(&self, pattern: &str, form: &Form) -> Option<u32> {
        let state = self.state.lock();
        let is = |own: &Subscription| &*own.pattern == pattern && own.form == *form;
        state.subscriptions.iter().find(|(_, own)| is(own)).map(|(number, _)| *number)
    }

    /// The pattern and the form of each subscription.
    pub(crate) fn subscriptions(&self) -> Vec<(Arc<str>, Form)> {
        let state = self.state.lock();
        state.subscriptions.values().map(|own| (own.pattern.clone(), own.form.clone())).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().subscriptions.len()
    }

    pub(crate) fn add(&self, pattern: Arc<str>, form: Form) -> u32 {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        let (retained, lost_before, lost_after) = (HashMap::new(), 0, 0);
        state.subscriptions.insert(number, Subscription { pattern, form, retained, lost_before, lost_after });
        number
    }

    /// Ends a subscription, and drops its waiting events.
    pub(crate) fn remove(&self, number: u32) {
        let mut state = self.state.lock();
        state.subscriptions.remove(&number);
        let mut bytes = 0;
        state.waiting.retain(|waiting| {
            let stays = waiting.subscription != number;
            bytes += if stays { waiting.event.bytes() } else { 0 };
            stays
        });
        state.bytes = bytes;
        state.latest.retain(|(own, _), _| *own != number);
    }

    /// Drops all waiting events. Before all subscriptions end one by one, this spares each the search for its own.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        state.waiting.clear();
        state.latest.clear();
        state.bytes = 0;
    }

    /// Adds a retained value that the connection got on its own.
    pub(crate) fn push_retained(&self, number: u32, event: Encoded) {
        let mut state = self.state.lock();
        if let Some(own) = state.subscriptions.get_mut(&number) {
            own.retained.insert(event.topic.clone(), event.sequence);
            // With `close`, a connection with more retained values than room could never subscribe.
            let when_slow =
                if self.when_slow == WhenSlow::Close { WhenSlow::DropOldest } else { self.when_slow };
            self.add_event(&mut state, number, &Arc::new(event), 0, when_slow);
        }
    }

    /// Adds an event from the hub, before which the hub itself lost `lost`. An event that came as a retained value is
    /// left out.
    pub(crate) fn push(&self, number: u32, event: &Arc<Encoded>, lost: u64) {
        let mut state = self.state.lock();
        let Some(own) = state.subscriptions.get_mut(&number) else { return };
        if let Some(known) = own.retained.get(&event.topic) {
            if event.sequence <= *known {
                return;
            }
            own.retained.remove(&event.topic);
        }
        self.add_event(&mut state, number, event, lost, self.when_slow);
        drop(state);
        self.waker.wake();
    }

    /// Whether an event found no room and the policy is to close the connection.
    pub(crate) fn is_overrun(&self) -> bool {
        self.state.lock().is_overrun
    }

    /// Wakes this task at the next event from the hub.
    pub(crate) fn register(&self, context: &Context<'_>) {
        self.waker.register(context.waker());
    }

    /// Ready once an event waits, or the connection is to be closed.
    pub(crate) fn poll_ready(&self, context: &Context<'_>) -> Poll<()> {
        self.register(context);
        let state = self.state.lock();
        if state.is_overrun || !state.waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The next event.
    pub(crate) fn next(&self) -> Option<Next> {
        let mut state = self.state.lock();
        let Waiting { subscription, lost, event, .. } = state.pop_oldest()?;
        if state.waiting.is_empty() {
            state.waiting.shrink_to(4);
        }
        let own = state.subscriptions.get_mut(&subscription)?;
        let lost = lost + std::mem::take(&mut own.lost_before);
        Some(Next { pattern: own.pattern.clone(), lost, body: event.body.clone() })
    }

    /// Lost events since the last call.
    pub(crate) fn take_uncounted(&self) -> u32 {
        std::mem::take(&mut self.state.lock().uncounted)
    }

    /// Adds an event, and makes room by the policy. An event that is larger than all the room waits alone.
    fn add_event(
        &self,
        state: &mut State,
        number: u32,
        event: &Arc<Encoded>,
        lost: u64,
        when_slow: WhenSlow,
    ) {
        state.note_lost(number, lost);
        if event.payload > self.max_payload {
            return state.note_lost(number, 1);
        }
        if when_slow == WhenSlow::Latest {
            state.replace(number, &event.topic);
        }
        while state.bytes + event.bytes() > self.max_bytes && !state.waiting.is_empty() {
            if when_slow == WhenSlow::Close {
                state.is_overrun = true;
                return state.note_lost(number, 1);
            }
            state.lose_oldest();
        }
        let Some(own) = state.subscriptions.get_mut(&number) else { return };
        let lost = std::mem::take(&mut own.lost_after);
        state.bytes += event.bytes();
        state.last_place += 1;
        let place = state.last_place;
        if when_slow == WhenSlow::Latest {
            state.latest.insert((number, event.topic.clone()), place);
        }
        state.waiting.push_back(Waiting { subscription: number, place, lost, event: event.clone() });
    }
}

impl State {
    fn note_lost(&mut self, number: u32, lost: u64) {
        if let Some(own) = self.subscriptions.get_mut(&number) {
            own.lost_after += lost;
            self.uncounted = self.uncounted.saturating_add(u32::try_from(lost).unwrap_or(u32::MAX));
        }
    }

    fn pop_oldest(&mut self) -> Option<Waiting> {
        let oldest = self.waiting.pop_front()?;
        self.bytes -= oldest.event.bytes();
        if !self.latest.is_empty() {
            // An event that waits under the policy is the latest of its topic.
            self.latest.remove(&(oldest.subscription, oldest.event.topic.clone()));
        }
        Some(oldest)
    }

    fn lose_oldest(&mut self) {
        if let Some(oldest) = self.pop_oldest() {
            self.uncounted = self.uncounted.saturating_add(1);
            if let Some(own) = self.subscriptions.get_mut(&oldest.subscription) {
                own.lost_before += oldest.lost + 1;
            }
        }
    }

    /// Loses the event of this topic that waits for this subscription, if one does. The event that takes its place
    /// counts it as lost.
    fn replace(&mut self, number: u32, topic: &Topic) {
        let Some(place) = self.latest.remove(&(number, topic.clone())) else { return };
        let Ok(at) = self.waiting.binary_search_by_key(&place, |waiting| waiting.place) else { return };
        let Some(replaced) = self.waiting.remove(at) else { return };
        self.bytes -= replaced.event.bytes();
        self.uncounted = self.uncounted.saturating_add(1);
        if let Some(own) = self.subscriptions.get_mut(&number) {
            own.lost_after += replaced.lost + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_event_counts_what_it_holds() {
        // Tables that grow by doubling hold up to twice what is in them.
        let place = 2 * size_of::<Waiting>();
        let shared = size_of::<Encoded>() + 2 * size_of::<usize>();
        let latest = 2 * size_of::<((u32, Topic), u64)>();
        assert!(place + shared + latest <= OVERHEAD, "{place} + {shared} + {latest}");
    }
}

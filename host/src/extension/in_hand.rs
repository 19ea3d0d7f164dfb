//! Requests that a guest has received and not answered.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tokio::time::Instant;

use crate::bus::{Answer, Error, Event, Incoming, MessageId, OperationId, PeerId, ReaderId, Request};

/// The requests that one instance has received and not answered, and how far it is through what the
/// last receive brought.
#[derive(Debug)]
pub(super) struct InHand {
    /// Requests that may be in hand at once; further ones stay in the inbox.
    max: usize,
    /// By id.
    requests: VecDeque<Held>,
    batch: VecDeque<Reached>,
    /// Whether the guest has promised to work through the batch in order.
    in_order: bool,
}

#[derive(Debug)]
struct Held {
    answer: Answer,
    sender: PeerId,
    operation: Arc<OperationId>,
    sent: Instant,
    /// Kept only for requests that could go back to the inbox.
    payload: Option<Bytes>,
}

/// A message of the last receive.
#[derive(Debug)]
enum Reached {
    Request(MessageId),
    Event(Event),
}

impl InHand {
    pub(super) fn new(max: usize) -> Self {
        Self { max, requests: VecDeque::new(), batch: VecDeque::new(), in_order: false }
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// A new receive: the guest is through with what the last one brought.
    pub(super) fn begin_batch(&mut self, in_order: bool) {
        self.in_order = in_order;
        if self.batch.is_empty() {
            return;
        }
        for reached in self.batch.drain(..) {
            if let Reached::Request(id) = reached
                && let Ok(place) = place(&self.requests, id)
                && let Some(held) = self.requests.get_mut(place)
            {
                // It cannot go back any more.
                held.payload = None;
            }
        }
    }

    /// Takes over a request that is delivered now; returns its payload for the guest.
    pub(super) fn hold(&mut self, request: Request) -> Bytes {
        let Request { sender, operation, sent, payload, answer, .. } = request;
        if self.in_order {
            self.batch.push_back(Reached::Request(answer.id()));
        }
        let kept = self.in_order.then(|| payload.clone());
        if let Err(place) = place(&self.requests, answer.id()) {
            self.requests.insert(place, Held { answer, sender, operation, sent, payload: kept });
        }
        payload
    }

    /// Remembers an event that is delivered now.
    pub(super) fn pass(&mut self, event: Event) {
        self.batch.push_back(Reached::Event(event));
    }

    /// Takes a request out to answer it; whether there was no room for another until now.
    pub(super) fn take(&mut self, id: MessageId) -> Option<(Answer, bool)> {
        let was_full = self.requests.len() >= self.max;
        let place = place(&self.requests, id).ok()?;
        Some((self.requests.remove(place)?.answer, was_full))
    }

    pub(super) fn deadline_of(&self, id: MessageId) -> Option<Instant> {
        let place = place(&self.requests, id).ok()?;
        Some(self.requests.get(place)?.answer.deadline())
    }

    /// Whether no further request may be delivered.
    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= self.max
    }

    /// Forgets the requests that nobody waits for any more.
    pub(super) fn forget_abandoned(&mut self) {
        self.requests.retain(|held| !held.answer.is_done());
    }

    /// The oldest request in hand that somebody waits for.
    pub(super) fn handling(&self) -> Option<(MessageId, PeerId, &OperationId)> {
        let held = self.requests.iter().find(|held| !held.answer.is_done())?;
        Some((held.answer.id(), held.sender, &held.operation))
    }

    /// The instance has ended: what it had in hand is answered with this error. What it had not reached is
    /// returned, for the next instance, and how many events of each subscription are lost.
    pub(super) fn end(&mut self, answer: &Error) -> (Vec<Incoming>, Vec<(u32, u64)>) {
        let requests = &self.requests;
        let is_answered = |id: &MessageId| place(requests, *id).is_err();
        let first_unanswered =
            self.batch.iter().position(|reached| matches!(reached, Reached::Request(id) if !is_answered(id)));
        let unreached = match first_unanswered {
            Some(position) => self.batch.split_off(position + 1),
            None => VecDeque::new(),
        };
        // What comes before an answered request of a batch in order was done with.
        let last_answered =
            self.batch.iter().rposition(|reached| matches!(reached, Reached::Request(id) if is_answered(id)));
        let in_hand = self.batch.iter().skip(last_answered.map_or(0, |position| position + 1));
        let lost = in_hand.filter_map(|reached| match reached {
            Reached::Event(event) => Some((event.subscription, event.lost.saturating_add(1))),
            Reached::Request(_) => None,
        });
        let lost = lost.collect();
        let back = unreached.into_iter().filter_map(|reached| match reached {
            Reached::Event(event) => Some(Incoming::Event(event)),
            Reached::Request(id) => {
                let place = place(&self.requests, id).ok()?;
                let Held { answer, sender, operation, sent, payload } = self.requests.remove(place)?;
                // Nobody's: the next instance's number is looked up.
                let (number, reader) = (0, ReaderId::NOBODY);
                let payload = payload?;
                Some(Incoming::Request(Request { sender, operation, number, reader, sent, payload, answer }))
            }
        });
        let back = back.collect();
        for held in std::mem::take(&mut self.requests) {
            held.answer.give(Err(answer.clone()));
        }
        (back, lost)
    }
}

/// Where a request is, or would be.
fn place(requests: &VecDeque<Held>, id: MessageId) -> Result<usize, usize> {
    requests.binary_search_by_key(&id, |held| held.answer.id())
}

//! Requests that a guest has received and not answered.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use tokio::time::Instant;

use crate::bus::{Answer, Error, Event, Incoming, MessageId, OperationId, PeerId, Request};

/// Requests that may be in hand at once; further ones stay in the inbox.
pub(super) const MAX_IN_HAND: usize = 1024;

/// The requests that one instance has received and not answered, and how far it is through a batch
/// that it has promised to work through in order.
#[derive(Debug, Default)]
pub(super) struct InHand {
    requests: BTreeMap<MessageId, Held>,
    batch: VecDeque<Reached>,
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

/// A message of a batch in order.
#[derive(Debug)]
enum Reached {
    Request(MessageId),
    Event(Event),
}

impl InHand {
    /// Takes over a request that is delivered now.
    pub(super) fn hold(&mut self, request: Request) {
        self.insert(request, false);
    }

    /// Takes over a request of a batch in order.
    pub(super) fn hold_in_order(&mut self, request: Request) {
        self.batch.push_back(Reached::Request(request.answer.id()));
        self.insert(request, true);
    }

    /// Remembers an event of a batch in order.
    pub(super) fn pass_in_order(&mut self, event: Event) {
        self.batch.push_back(Reached::Event(event));
    }

    /// A new receive: the guest is through with the batch before.
    pub(super) fn forget_batch(&mut self) {
        self.batch.clear();
    }

    /// Takes a request out to answer it.
    pub(super) fn take(&mut self, id: MessageId) -> Option<Answer> {
        Some(self.requests.remove(&id)?.answer)
    }

    pub(super) fn deadline_of(&self, id: MessageId) -> Option<Instant> {
        Some(self.requests.get(&id)?.answer.deadline())
    }

    /// Whether no further request may be delivered. Forgets those that nobody waits for any more.
    pub(super) fn is_full(&mut self) -> bool {
        if self.requests.len() >= MAX_IN_HAND {
            self.requests.retain(|_, held| !held.answer.is_done());
        }
        self.requests.len() >= MAX_IN_HAND
    }

    /// What is in hand, as the instance dies: the request in hand first, for the record of it.
    pub(super) fn handling(&self) -> Option<(MessageId, PeerId, &OperationId)> {
        let (id, held) = self.requests.first_key_value()?;
        Some((*id, held.sender, &held.operation))
    }

    /// The instance has died: what it had in hand is answered `trapped`; what it had not reached is
    /// returned, for the next instance.
    pub(super) fn die(&mut self) -> Vec<Incoming> {
        let first_unanswered = self
            .batch
            .iter()
            .position(|reached| matches!(reached, Reached::Request(id) if self.requests.contains_key(id)));
        let unreached = match first_unanswered {
            Some(position) => self.batch.split_off(position + 1),
            None => VecDeque::new(),
        };
        let back = unreached.into_iter().filter_map(|reached| match reached {
            Reached::Event(event) => Some(Incoming::Event(event)),
            Reached::Request(id) => {
                let Held { answer, sender, operation, sent, payload } = self.requests.remove(&id)?;
                // Generation 0 is nobody's: the next instance's number is looked up.
                let (number, generation) = (0, 0);
                let payload = payload?;
                Some(Incoming::Request(Request { sender, operation, number, generation, sent, payload, answer }))
            }
        });
        let back = back.collect();
        for (_, held) in std::mem::take(&mut self.requests) {
            held.answer.give(Err(Error::Trapped));
        }
        back
    }

    fn insert(&mut self, request: Request, keep_payload: bool) {
        let Request { sender, operation, sent, payload, answer, .. } = request;
        let payload = keep_payload.then_some(payload);
        self.requests.insert(answer.id(), Held { answer, sender, operation, sent, payload });
    }
}

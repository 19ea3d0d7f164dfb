//! Requests that a guest has received and not answered.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use bytes::Bytes;
use weir_bus::{
    CarriedValues, Error, Event, Incoming, InstanceId, MessageId, Parent, PeerId, Request, Responder,
    SpanOrigin,
};

use super::{held::Handling, jobs::Jobs};

/// The requests in hand of one instance, and how far it has come in its last receive.
#[derive(Debug)]
pub(super) struct InHand {
    /// The most requests in hand. Further ones stay in the inbox.
    max: usize,
    /// The requests, in the order of their ids.
    requests: VecDeque<HeldRequest>,
    /// The events of the last receive and, if the guest works in order, its requests.
    batch: VecDeque<Reached>,
    /// Whether the guest has promised to work through the batch in order.
    in_order: bool,
    given: Given,
}

/// The first request of the last receive or, if it brought none, its first reply or job.
#[derive(Clone, Copy, Debug)]
enum Given {
    Nothing,
    Request(MessageId),
    /// A reply: the request that it answers, and the peer that sent it.
    Response(MessageId, PeerId),
    Job(MessageId),
}

/// The requests that an instance had in hand when it ended. They count as failed at once, and are answered when this is
/// dropped.
#[derive(Debug)]
pub struct Unanswered {
    requests: Vec<Responder>,
    answer: Error,
}

impl Unanswered {
    pub(crate) fn new(requests: Vec<Responder>, answer: Error) -> Self {
        requests.iter().for_each(|request| request.count_failure(&answer));
        Self { requests, answer }
    }

    /// Returns the ids of the requests that somebody waits for or had ended, in their order.
    pub fn ids(&self) -> Arc<[MessageId]> {
        self.requests.iter().filter(|request| counts(request)).map(|request| request.id()).collect()
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        for request in self.requests.drain(..) {
            request.give_counted(self.answer.clone());
        }
    }
}

#[derive(Debug)]
struct HeldRequest {
    responder: Responder,
    /// Kept only while the request could go back to the inbox.
    payload: Option<Bytes>,
    /// Until the host calls a function with them.
    values: Option<Arc<dyn CarriedValues>>,
}

/// A message of the last receive that the guest has reached or will reach.
#[derive(Debug)]
enum Reached {
    Request(MessageId),
    Event(Event),
}

impl InHand {
    pub(super) fn new(max: usize) -> Self {
        let (requests, batch) = (VecDeque::new(), VecDeque::new());
        Self { max, requests, batch, in_order: false, given: Given::Nothing }
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Notes that a new receive begins, so the guest has reached all messages of the last one.
    pub(super) fn begin_batch(&mut self, in_order: bool) {
        self.in_order = in_order;
        self.given = Given::Nothing;
        if self.batch.is_empty() {
            return;
        }
        for reached in self.batch.drain(..) {
            if let Reached::Request(id) = reached
                && let Ok(place) = place(&self.requests, id)
                && let Some(held) = self.requests.get_mut(place)
            {
                // The payload is dropped, because the request cannot go back to the inbox any more.
                held.payload = None;
            }
        }
    }

    /// Takes a request that is delivered now into hand, and returns its payload for the guest.
    pub(super) fn hold(&mut self, request: Request) -> Bytes {
        let Request { payload, values, responder, .. } = request;
        if !matches!(self.given, Given::Request(_)) {
            self.given = Given::Request(responder.id());
        }
        if self.in_order {
            self.batch.push_back(Reached::Request(responder.id()));
        }
        let kept = self.in_order.then(|| payload.clone());
        match place(&self.requests, responder.id()) {
            Err(place) if place == self.requests.len() => {
                self.requests.push_back(HeldRequest { responder, payload: kept, values });
            }
            Err(place) => self.requests.insert(place, HeldRequest { responder, payload: kept, values }),
            Ok(_) => {}
        }
        payload
    }

    /// Notes that an event goes to the guest.
    pub(super) fn pass(&mut self, event: Event) {
        self.batch.push_back(Reached::Event(event));
    }

    /// Notes that the reply to a request of the guest goes to the guest.
    pub(super) fn pass_response(&mut self, id: MessageId, from: PeerId) {
        if matches!(self.given, Given::Nothing) {
            self.given = Given::Response(id, from);
        }
    }

    /// Notes that a job goes to the guest.
    pub(super) fn pass_job(&mut self, id: MessageId) {
        if matches!(self.given, Given::Nothing) {
            self.given = Given::Job(id);
        }
    }

    /// Takes a request out of hand to answer it. Also returns whether there was no room for another until now. Returns
    /// none if the request is not in hand.
    pub(super) fn remove(&mut self, id: MessageId) -> Option<(Responder, bool)> {
        let was_full = self.requests.len() >= self.max;
        let held = match place(&self.requests, id).ok()? {
            0 => self.requests.pop_front(),
            place => self.requests.remove(place),
        };
        Some((held?.responder, was_full))
    }

    pub(super) fn parent(&self, id: MessageId) -> Option<Parent> {
        let responder = self.responder(id)?;
        let trace = responder.span().map(|span| SpanOrigin::within(span.context()));
        Some(Parent { deadline: Some(responder.term().deadline), trace, counted: 0 })
    }

    /// Returns the latest deadline of the requests in hand.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.requests.iter().map(|held| held.responder.term().deadline.into()).max()
    }

    pub(super) fn responder(&self, id: MessageId) -> Option<&Responder> {
        let place = place(&self.requests, id).ok()?;
        Some(&self.requests.get(place)?.responder)
    }

    /// Takes the values that a request in hand carries, if it does.
    pub(super) fn take_values(&mut self, id: MessageId) -> Option<Arc<dyn CarriedValues>> {
        let place = place(&self.requests, id).ok()?;
        self.requests.get_mut(place)?.values.take()
    }

    /// Returns the first event of the last receive, unless that receive brought a request, reply or job.
    pub(super) fn event(&self) -> Option<&Event> {
        match (self.given, self.batch.front()) {
            (Given::Nothing, Some(Reached::Event(event))) => Some(event),
            _ => None,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= self.max
    }

    /// Forgets requests whose callers no longer wait, unless the instance is ended for that.
    pub(super) fn forget_abandoned(&mut self) {
        self.requests.retain(|held| counts(&held.responder));
    }

    /// Returns the message that the guest handles, as far as that can be told. It is the first unanswered one of the
    /// last receive, or else the oldest request in hand with a waiting caller, or else the job in hand with the lowest
    /// id.
    pub(super) fn handling(&self, jobs: &Jobs) -> Option<Handling> {
        let oldest =
            || self.requests.iter().find(|held| !held.responder.is_done()).map(HeldRequest::handling);
        self.given(jobs).or_else(oldest).or_else(|| jobs.handling(None))
    }

    pub(super) fn handling_of(&self, id: MessageId) -> Option<Handling> {
        let place = place(&self.requests, id).ok()?;
        self.requests.get(place).map(HeldRequest::handling)
    }

    /// Returns the message of the last receive that the guest handles, if one is left.
    fn given(&self, jobs: &Jobs) -> Option<Handling> {
        // A guest that works in order has finished everything before an answered request.
        let is_left = |reached: &Reached| match reached {
            Reached::Request(id) => place(&self.requests, *id).is_ok(),
            Reached::Event(_) => true,
        };
        let done = self.batch.iter().rposition(|reached| !is_left(reached)).map_or(0, |last| last + 1);
        let first = self.batch.get(done);
        match (self.given, first) {
            (_, Some(Reached::Request(id))) => self.held_from(*id),
            (Given::Request(id), None) => self.held_from(id),
            (Given::Request(id), Some(Reached::Event(event))) if !self.in_order => {
                self.held_from(id).or_else(|| Some(Handling::of_event(&event.published)))
            }
            (_, Some(Reached::Event(event))) => Some(Handling::of_event(&event.published)),
            (Given::Response(id, sender), None) => {
                let operation = "response".to_owned();
                Some(Handling { message: Some(id), sequence: None, sender, operation })
            }
            (Given::Job(id), None) => jobs.handling(Some(id)),
            (Given::Nothing, None) => None,
        }
    }

    /// Returns the request in hand with this id, or else the one with the next higher id. A receive brings requests in
    /// the order of their ids, unless others came in between.
    fn held_from(&self, id: MessageId) -> Option<Handling> {
        let place = place(&self.requests, id).unwrap_or_else(|next| next);
        self.requests.get(place).map(HeldRequest::handling)
    }

    /// Empties the hand, because the instance has ended. Returns the requests that the guest had reached, the messages
    /// that it had not reached, for the next instance, and how many events of each subscription are lost.
    pub(super) fn end(&mut self) -> (Vec<Responder>, Vec<Incoming>, Vec<(u32, u64)>) {
        let requests = &self.requests;
        let is_answered = |id: &MessageId| place(requests, *id).is_err();
        let first_unanswered =
            self.batch.iter().position(|reached| matches!(reached, Reached::Request(id) if !is_answered(id)));
        let unreached = match first_unanswered {
            Some(position) => self.batch.split_off(position + 1),
            None => VecDeque::new(),
        };
        // A guest that works in order has finished everything before an answered request.
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
                let HeldRequest { responder, payload, values } = self.requests.remove(place)?;
                // The number is invalid, so that the next instance looks up its own.
                let (number, instance) = (0, InstanceId::NOBODY);
                let payload = payload?;
                Some(Incoming::Request(Request { number, instance, payload, values, responder }))
            }
        });
        let back = back.collect();
        let reached = std::mem::take(&mut self.requests).into_iter().map(|held| held.responder);
        (reached.collect(), back, lost)
    }
}

impl HeldRequest {
    fn handling(&self) -> Handling {
        let request = &self.responder;
        Handling::of_request(request.id(), request.sender(), request.operation())
    }
}

/// Whether the sender of a request waits, or has the instance ended.
fn counts(request: &Responder) -> bool {
    !request.is_done() || request.is_killing()
}

/// Returns the place of the request with this id, or as an error the place where it belongs.
fn place(requests: &VecDeque<HeldRequest>, id: MessageId) -> Result<usize, usize> {
    let id_of = |held: &HeldRequest| held.responder.id();
    // Nearly always, no request is in hand, or the id comes after the last or is the first.
    match (requests.front(), requests.back()) {
        (None, _) => Err(0),
        (_, Some(last)) if id_of(last) < id => Err(requests.len()),
        (Some(first), _) if id_of(first) == id => Ok(0),
        _ => requests.binary_search_by_key(&id, id_of),
    }
}

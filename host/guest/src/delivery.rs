//! The delivery of messages to one guest: everything between its inbox and its `receive`.
//!
//! Owns how messages are received (single, in batches, jobs and events in turns), what the guest has in hand, which of
//! its requests may still get a reply, and whether it is ready. Knows nothing of the Store and sets no fuel: the
//! imports charge the guest and then call this. It asks the meter only for the time.

mod calls;
mod checks;
mod clock;
mod handler_limit;
mod held;
mod in_hand;
mod jobs;
mod readiness;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
};

use bytes::Bytes;
use weir_bus::{
    Error, Event, Incoming, MessageId, OpenSpan, Parent, Peer, PeerId, Reply, Request, SpanOrigin,
    TakeOptions, Taken, Waiter,
};
use weir_metrics::Usage;

pub(super) use self::{
    checks::Checks,
    handler_limit::HandlerLimit,
    held::Held,
    jobs::{Jobs, TakenQueues},
    readiness::MAX_REASON,
};
use self::{clock::Clock, in_hand::InHand, readiness::Readiness};
pub use self::{held::Handling, in_hand::Unanswered};
use super::{abi, memory::size, meter::Meter, signals::Signals};

/// The messages of one guest: those that it may take, and those that it has in hand.
#[derive(Debug)]
pub(super) struct Delivery {
    peer: Arc<Peer>,
    in_hand: InHand,
    pub(super) jobs: Jobs,
    /// The guest's jobs in hand, and the first event of the last receive.
    held: Arc<Held>,
    /// Whether the last receive brought an event.
    has_event: bool,
    /// Whether a job comes before an event next time.
    is_turn_of_jobs: bool,
    /// The guest's own requests whose answers come through the inbox.
    under_way: BTreeMap<MessageId, Arc<Waiter>>,
    /// The most requests in hand, and the most of the guest's own requests under way.
    in_flight: u64,
    /// The peers that sent the guest requests, events or jobs. The guest may ask for their names.
    pub(super) met: BTreeSet<PeerId>,
    pub(super) readiness: Readiness,
    /// Checks the requests to the guest, if that is configured. A request that does not fit is answered with an error.
    pub(super) checks: Option<Box<Checks>>,
    /// Whether values are taken in place of payloads.
    pub(super) takes_values: bool,
    /// Whether a look found no message for the guest because it refused a request, so that more may wait.
    has_refused: bool,
    /// The spans of requests that were just taken.
    new_spans: Vec<Arc<OpenSpan>>,
    /// Whether a sampled request may be in hand.
    has_spans: bool,
    /// Whether the last receive brought a sampled event.
    has_traced_event: bool,
    usage: Arc<Usage>,
}

impl Delivery {
    /// Makes the delivery to one guest. `in_flight` bounds each of its requests in hand, its jobs in hand, and its own
    /// requests under way.
    pub(super) fn new(peer: Arc<Peer>, signals: Arc<Signals>, usage: Arc<Usage>, in_flight: u64) -> Self {
        let held = Arc::<Held>::default();
        Self {
            in_hand: InHand::new(size(in_flight)),
            jobs: Jobs::new(peer.clone(), size(in_flight), held.clone()),
            held,
            has_event: false,
            is_turn_of_jobs: false,
            under_way: BTreeMap::new(),
            in_flight,
            met: BTreeSet::new(),
            readiness: Readiness::new(peer.clone(), signals),
            checks: None,
            takes_values: false,
            has_refused: false,
            new_spans: Vec::new(),
            has_spans: false,
            has_traced_event: false,
            usage,
            peer,
        }
    }

    /// Puts the next message into `next`, without waiting. Returns the number of messages: 1, or 0 for a stop. Returns
    /// none if there is no message, or the next one was a request that was refused.
    pub(super) fn receive(
        &mut self,
        task: Option<&Waker>,
        meter: &Meter,
        next: &mut Option<abi::Message>,
    ) -> Option<usize> {
        self.begin_receive(false);
        let found = self.next_message(task, &Clock::new(meter), next);
        self.jobs.end_receive();
        match found {
            Offer::Stop => Some(0),
            Offer::Empty => None,
            Offer::Message => Some(1),
        }
    }

    /// Returns whether a look found no message because it refused a request, so that more may wait. Forgets that for
    /// the next call.
    pub(super) fn reset_refused(&mut self) -> bool {
        std::mem::take(&mut self.has_refused)
    }

    /// Waits after a look that found no message, until a new look may find one. With `at_once`, waits only until others
    /// have run.
    pub(super) fn readable(&self, at_once: bool) -> impl Future<Output = ()> + use<> {
        let queues = (self.jobs.takes && !at_once).then(|| self.jobs.taken_queues().clone());
        let mut has_waited = false;
        async move {
            match queues {
                Some(queues) => queues.readable().await,
                // The inbox has the task's waker, so the task is polled again when a message comes.
                None => {
                    poll_fn(|context| match std::mem::replace(&mut has_waited, true) {
                        true => Poll::Ready(()),
                        false => {
                            if at_once {
                                context.waker().wake_by_ref();
                            }
                            Poll::Pending
                        }
                    })
                    .await;
                }
            }
        }
    }

    /// Takes up to `max` messages, without waiting. Returns an empty batch for a stop. Returns none if there is no
    /// message, or the first one was a request that was refused.
    pub(super) fn receive_batch(
        &mut self,
        task: Option<&Waker>,
        meter: &Meter,
        max: usize,
        order: abi::BatchOrder,
    ) -> Option<Vec<abi::OnePiece<abi::Message>>> {
        self.begin_receive(order == abi::BatchOrder::InOrder);
        let mut batch = Vec::new();
        let (clock, mut next, mut is_stop) = (Clock::new(meter), None, false);
        // A stop ends a batch that has messages. The next receive then returns the stop.
        while batch.len() < max && (batch.is_empty() || !self.peer.is_stopping()) {
            match self.next_message(task.filter(|_| batch.is_empty()), &clock, &mut next) {
                Offer::Message => batch.extend(next.take().map(abi::OnePiece)),
                end => {
                    is_stop = matches!(end, Offer::Stop);
                    break;
                }
            }
        }
        self.jobs.end_receive();
        self.has_refused &= batch.is_empty();
        (is_stop || !batch.is_empty()).then_some(batch)
    }

    /// Answers a request in hand. Fails if the payload is too large or the request is not in hand. An answer after the
    /// deadline is only counted.
    pub(super) fn respond(&mut self, id: u64, answer: Result<Bytes, Error>) -> Result<(), Error> {
        if let Ok(payload) = &answer {
            self.peer.check_size(payload)?;
        }
        let (duty, was_full) = self.in_hand.remove(MessageId(id)).ok_or_else(|| not_in_hand(id))?;
        self.show_in_hand();
        self.has_spans &= self.in_hand.len() > 0;
        if !duty.give_unmeasured(answer) {
            self.peer.count_late();
        } else if let Some(stats) = duty.stats() {
            stats.durations().clone().add_ending(duty.term().sent);
        }
        if was_full {
            self.peer.hold_requests(false);
        }
        Ok(())
    }

    pub(super) fn set_taking(&mut self, queue: u32, how: abi::Taking) -> Result<(), Error> {
        self.jobs.set_taking(queue, how, self.in_flight)
    }

    /// Returns the parent of a message that the guest sends for the request or job with this id.
    pub(super) fn parent(&self, id: u64) -> Result<Parent, Error> {
        let id = MessageId(id);
        self.in_hand.parent(id).or_else(|| self.jobs.parent(id)).ok_or_else(|| not_in_hand(id.0))
    }

    /// Returns the latest deadline of the guest's requests in hand. Returns none if there are no requests, or a job is
    /// in hand, because jobs have no deadline.
    pub(super) fn deadline_in_hand(&self) -> Option<std::time::Instant> {
        if self.held.has_jobs() { None } else { self.in_hand.deadline() }
    }

    /// Returns the parent of a message that the guest sends without naming a request or job: the event that it handles,
    /// if that is sampled.
    pub(super) fn cause(&self) -> Parent {
        let event = self.has_traced_event.then(|| self.in_hand.event()).flatten();
        let trace = event.and_then(|event| event.published.trace.as_deref());
        Parent { trace: trace.map(SpanOrigin::after), ..Parent::default() }
    }

    /// Notes in the spans of the requests just taken how much fuel the guest had used before.
    pub(super) fn note_fuel_before(&mut self, used: u64) {
        for span in self.new_spans.drain(..) {
            span.note_fuel_before(used);
        }
    }

    /// Returns the span of a request, if the request is in hand and sampled.
    pub(super) fn span(&self, id: u64) -> Option<&Arc<OpenSpan>> {
        if self.has_spans { self.in_hand.responder(MessageId(id))?.span() } else { None }
    }

    /// Whether requests just taken are sampled.
    pub(super) fn has_new_spans(&self) -> bool {
        !self.new_spans.is_empty()
    }

    /// Returns the message that the guest handles, as far as that can be told.
    pub(super) fn handling(&self) -> Option<Handling> {
        self.in_hand.handling(&self.jobs)
    }

    /// Returns the request in hand with this id.
    pub(super) fn handling_of(&self, id: MessageId) -> Option<Handling> {
        self.in_hand.handling_of(id)
    }

    /// Returns the event, job or call that has been in hand the longest.
    pub(super) fn overdue(&self) -> Option<Handling> {
        self.held.oldest(None)
    }

    /// Returns the events, jobs and call in hand.
    pub(super) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// Ends the delivery because the instance has ended. Requests that the guest had reached get `answer` once the
    /// returned value is dropped. Requests and events that the guest had not reached go back to the front of the inbox,
    /// and its jobs to their queues.
    pub(super) fn end(&mut self, answer: Error) -> Unanswered {
        let (reached, unreached, lost) = self.in_hand.end();
        self.peer.give_back(unreached, &lost);
        self.jobs.end();
        Unanswered::new(reached, answer)
    }

    /// Forgets requests whose replies have come, for a guest that hears none.
    pub(super) fn forget_replies(&mut self) {
        self.under_way.retain(|_, waiter| !waiter.is_done());
        self.show_under_way();
    }

    /// Fails if the guest already has as many requests of its own under way as its limit allows.
    pub(super) fn check_under_way(&self) -> Result<(), Error> {
        let (used, allowed) = (self.under_way.len() as u64 + 1, self.in_flight);
        if used > allowed {
            Err(Error::LimitExceeded { name: "in-flight".into(), used, allowed })
        } else {
            Ok(())
        }
    }

    /// Notes a request that the guest has sent, and returns its id.
    pub(super) fn sent(&mut self, waiter: Arc<Waiter>) -> u64 {
        let id = waiter.id();
        self.under_way.insert(id, waiter);
        self.show_under_way();
        id.0
    }

    /// Ends the wait for the reply to a request of the guest.
    pub(super) fn cancel(&mut self, id: u64) {
        // If the wait has ended already, the reply is on its way and counts as under way until the guest receives it.
        if self.under_way.get(&MessageId(id)).is_some_and(|waiter| waiter.cancel()) {
            self.under_way.remove(&MessageId(id));
            self.show_under_way();
        }
    }

    fn show_in_hand(&self) {
        self.usage.in_hand.set(self.in_hand.len() as u64);
    }

    fn show_under_way(&self) {
        self.usage.under_way.set(self.under_way.len() as u64);
    }

    /// Notes that the guest asks for more messages. It has then finished the events of the last receive and the jobs
    /// that came one by one, and has reached all requests.
    fn begin_receive(&mut self, in_order: bool) {
        self.in_hand.begin_batch(in_order);
        if std::mem::take(&mut self.has_event) {
            self.held.end_event();
        }
        self.has_traced_event = false;
        self.jobs.begin_receive();
    }

    /// Looks for the next message and puts it into `to`. Jobs and events take turns.
    fn next_message(
        &mut self,
        task: Option<&Waker>,
        clock: &Clock<'_>,
        to: &mut Option<abi::Message>,
    ) -> Offer {
        if self.in_hand.is_full() && self.peer.take_abandoned_in_hand() {
            self.in_hand.forget_abandoned();
            self.show_in_hand();
        }
        // `hold` is given each time, because the inbox forgets it when a caller gives up.
        let look =
            TakeOptions { events: true, hold: Some(self.in_hand.is_full()), counts_abandoned: false, task };
        match self.jobs.takes {
            true => self.next_from_inbox_or_queue(look, clock, to),
            false => self.next_from_inbox(&look, clock, to),
        }
    }

    // Kept out of line, so that a look that finds nothing does not reserve the stack for both ways.
    #[inline(never)]
    fn next_from_inbox(
        &mut self,
        look: &TakeOptions<'_>,
        clock: &Clock<'_>,
        to: &mut Option<abi::Message>,
    ) -> Offer {
        let taken = self.peer.take_with(look);
        self.deliver(taken, clock, to)
    }

    #[inline(never)]
    fn next_from_inbox_or_queue(
        &mut self,
        look: TakeOptions<'_>,
        clock: &Clock<'_>,
        to: &mut Option<abi::Message>,
    ) -> Offer {
        let jobs_first = self.is_turn_of_jobs;
        match self.peer.take_with(&TakeOptions { events: !jobs_first, ..look }) {
            Taken::Empty => {}
            Taken::Message(event @ Incoming::Event(_)) => {
                self.is_turn_of_jobs = true;
                return self.deliver(Taken::Message(event), clock, to);
            }
            taken => return self.deliver(taken, clock, to),
        }
        if let Some((job, sender)) = self.jobs.next(clock) {
            self.in_hand.pass_job(MessageId(job.id));
            self.is_turn_of_jobs = false;
            self.met.insert(sender);
            *to = Some(abi::Message::Job(job));
            return Offer::Message;
        }
        if !jobs_first {
            return Offer::Empty;
        }
        let taken = self.peer.take_with(&look);
        self.deliver(taken, clock, to)
    }

    /// Puts a message that was taken from the inbox into `to`, unless it is a request that is refused.
    fn deliver(&mut self, taken: Taken, clock: &Clock<'_>, to: &mut Option<abi::Message>) -> Offer {
        match taken {
            Taken::Stop => Offer::Stop,
            Taken::Empty => Offer::Empty,
            Taken::Message(message) => {
                let message = match message {
                    Incoming::Request(request) => {
                        let Some(request) = self.with_payload(request) else { return Offer::Empty };
                        if self.refuses(&request, clock) {
                            return Offer::Empty;
                        }
                        Incoming::Request(request)
                    }
                    message => message,
                };
                *to = Some(self.delivered(message, clock));
                Offer::Message
            }
        }
    }

    /// Checks a request, if that is configured. Answers a request that does not fit with an error, and returns true.
    /// The look then ends, so that others run before the next request is checked.
    fn refuses(&mut self, request: &Request, clock: &Clock<'_>) -> bool {
        let Some(checks) = &self.checks else { return false };
        let misfit = checks.misfit(request);
        // The time is read again, because a check may take long.
        clock.read_anew();
        let Some(misfit) = misfit else { return false };
        self.has_refused = true;
        self.peer.count_refused();
        request.responder.give(Err(misfit));
        true
    }

    /// Returns the message as it goes into the guest, and keeps what later calls need of it.
    fn delivered(&mut self, message: Incoming, clock: &Clock<'_>) -> abi::Message {
        match message {
            Incoming::Request(request) => self.deliver_request(request, clock),
            Incoming::Reply(Reply { id, outcome }) => {
                if let Some(waiter) = self.under_way.remove(&id) {
                    self.in_hand.pass_response(id, waiter.receiver());
                }
                self.show_under_way();
                abi::Message::Response(abi::Response { id: id.0, outcome: outcome.map_err(Into::into) })
            }
            Incoming::Event(event) => self.deliver_event(event, clock),
        }
    }

    fn deliver_request(&mut self, request: Request, clock: &Clock<'_>) -> abi::Message {
        let (id, sender, operation) = (request.responder.id().0, request.responder.sender(), request.number);
        self.met.insert(sender);
        let waited = clock.now().saturating_sub(request.responder.term().sent);
        let remaining_ms = abi::milliseconds(request.responder.term().allowed.saturating_sub(waited));
        let waited_us = abi::microseconds(waited);
        if let Some(span) = request.responder.span() {
            self.new_spans.push(span.clone());
            self.has_spans = true;
        }
        let payload = self.in_hand.hold(request);
        self.show_in_hand();
        let sender = sender.0;
        abi::Message::Request(abi::Request { id, sender, operation, remaining_ms, waited_us, payload })
    }

    fn deliver_event(&mut self, event: Event, clock: &Clock<'_>) -> abi::Message {
        self.met.insert(event.published.sender);
        self.has_traced_event |= event.published.trace.is_some();
        let now = clock.now();
        if !std::mem::replace(&mut self.has_event, true) {
            self.held.hold_event(now, &event.published);
        }
        self.in_hand.pass(event.clone());
        let Event { subscription, names_one_topic, lost, retained, published } = event;
        abi::Message::Event(abi::Event {
            sender: published.sender.0,
            subscription,
            topic: (!names_one_topic).then(|| published.topic.to_string()),
            sequence: published.sequence,
            lost,
            retained,
            waited_us: abi::microseconds(now.saturating_sub(published.at)),
            payload: published.payload.clone(),
        })
    }
}

/// What a look found. `Empty` also stands for a request that was refused.
enum Offer {
    Stop,
    Empty,
    Message,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        for waiter in self.under_way.values() {
            waiter.cancel();
        }
        self.usage.in_hand.set(0);
        self.usage.under_way.set(0);
    }
}

fn not_in_hand(id: u64) -> Error {
    Error::Invalid(format!("request {id} is not in hand: never received, or answered already"))
}

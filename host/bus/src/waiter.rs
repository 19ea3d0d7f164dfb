//! The wait for one answer. It begins when the request is sent, and ends with the answer, at the deadline, when the
//! caller gives up, or when the receiver dies.

use std::{
    future::poll_fn,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use weir_metrics::moment;
#[cfg(test)]
use weir_metrics::nanoseconds;

use crate::{
    id::{InstanceId, MessageId, OperationId, PeerId},
    message::Reply,
    operations::{OperationStats, Operations},
    peer::Peer,
    trace::{OpenSpan, What},
};
use weir_names::Error;

/// An operation and the peer that answers it. All requests sent after one look-up share one route.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) operation: Arc<OperationId>,
    /// The operation's counts. Set once an instance of the receiver is known to serve the operation.
    pub(crate) stats: OnceLock<Arc<OperationStats>>,
    /// The operation's counts for requests that a canary takes. Set once it has taken one.
    by_canary: OnceLock<Arc<OperationStats>>,
    pub(crate) receiver: Arc<Peer>,
}

impl Route {
    pub(crate) fn new(operation: Arc<OperationId>, receiver: Arc<Peer>) -> Self {
        Self { operation, stats: OnceLock::new(), by_canary: OnceLock::new(), receiver }
    }
}

/// When a request is sent, when its answer is due, and its span if it is sampled.
#[derive(Clone, Debug)]
pub struct Term {
    /// When the request is sent, as a [`moment`].
    pub sent: u64,
    /// Nanoseconds from then to the deadline.
    pub allowed: u64,
    /// When the wait for the answer ends.
    pub deadline: Instant,
    pub(crate) span: Option<Arc<OpenSpan>>,
}

impl Term {
    /// A term without a span.
    #[cfg(test)]
    pub(crate) fn new(sent: Instant, deadline: Instant) -> Self {
        let allowed = nanoseconds(deadline.saturating_duration_since(sent));
        Self { sent: moment(sent.into_std()), allowed, deadline, span: None }
    }
}

/// The wait for one answer.
#[derive(Debug)]
pub struct Waiter {
    id: MessageId,
    sender: PeerId,
    term: Term,
    route: Arc<Route>,
    /// Bytes of the largest payload that the caller may handle.
    max_answer: u64,
    to: ReplyTo,
    done: AtomicBool,
    /// Wakes receivers that watch for the end of the wait.
    ended: Notify,
    is_watched: AtomicBool,
    /// Whether a canary took the request last.
    by_canary: AtomicBool,
    /// Whether the end of the wait without an answer also ends the instance that has the request in hand.
    kills: AtomicBool,
    /// Whether the request counts as failed before the wait has ended.
    is_counted: AtomicBool,
    /// The instance of the receiver that took the request last. Nobody once the duty to answer is gone: the request is
    /// answered, or will not be.
    taker: AtomicU64,
}

#[derive(Debug)]
pub(crate) enum ReplyTo {
    /// The answer goes to a caller that waits for this one answer.
    Slot(Slot),
    /// The answer goes to the replies lane of the sender's inbox.
    Lane {
        sender: Arc<Peer>,
        /// The instance that sent the request.
        instance: InstanceId,
    },
}

impl Waiter {
    pub(crate) fn new(
        id: MessageId,
        sender: PeerId,
        term: Term,
        route: Arc<Route>,
        max_answer: u64,
        to: ReplyTo,
    ) -> Self {
        Self {
            id,
            sender,
            term,
            route,
            max_answer,
            to,
            done: AtomicBool::new(false),
            ended: Notify::new(),
            is_watched: AtomicBool::new(false),
            by_canary: AtomicBool::new(false),
            kills: AtomicBool::new(false),
            is_counted: AtomicBool::new(false),
            taker: AtomicU64::new(InstanceId::NOBODY.0),
        }
    }

    /// The number of the request.
    #[inline]
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// The peer that must answer.
    #[inline]
    pub fn receiver(&self) -> PeerId {
        self.route.receiver.id()
    }

    /// Returns when the wait has ended.
    pub async fn ended(&self) {
        let ended = self.ended.notified();
        self.is_watched.store(true, Ordering::SeqCst);
        if !self.is_done() {
            ended.await;
        }
    }

    /// Ends the wait without an answer. Returns false if the wait had ended before, and its outcome may be on its way.
    pub fn cancel(self: &Arc<Self>) -> bool {
        let first = self.end();
        if first {
            self.end_work();
            self.end_span("cancelled");
            self.route.receiver.inbox().note_abandoned();
            if let ReplyTo::Lane { sender, instance } = &self.to {
                sender.inbox().expect_no_reply(*instance);
            }
        }
        first
    }

    /// Makes the end of the wait without an answer, by a cancel or at the deadline, also end the instance that has the
    /// request in hand.
    pub(crate) fn set_killing(&self) {
        self.kills.store(true, Ordering::SeqCst);
    }

    /// [`set_killing`](Self::set_killing), for a wait that may have ended already. Of both orders one sees the other.
    pub(crate) fn kill_late(self: &Arc<Self>) {
        self.set_killing();
        if self.is_done() {
            self.end_work();
        }
    }

    /// Whether the end of the wait without an answer also ends the instance that has the request in hand.
    pub fn is_killing(&self) -> bool {
        self.kills.load(Ordering::SeqCst)
    }

    /// Ends the work for the request, if its sender wants that.
    fn end_work(self: &Arc<Self>) {
        if self.is_killing() {
            self.route.receiver.inbox().end_work(self);
        }
    }

    /// The instance that took the request last.
    pub(crate) fn taker(&self) -> InstanceId {
        InstanceId(self.taker.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn let_go(&self) {
        self.taker.store(InstanceId::NOBODY.0, Ordering::Release);
    }

    /// The peer that sent the request.
    #[inline]
    pub fn sender(&self) -> PeerId {
        self.sender
    }

    /// The operation asked for.
    #[inline]
    pub fn operation(&self) -> &OperationId {
        &self.route.operation
    }

    /// When the request was sent, and when the wait ends.
    #[inline]
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// The request's span, if it is sampled.
    #[inline]
    pub fn span(&self) -> Option<&Arc<OpenSpan>> {
        self.term.span.as_ref()
    }

    /// Whether the wait has ended: answered, timed out or given up.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    /// Gives the outcome to the sender, and counts how long the request took. Returns false if the wait had ended
    /// before.
    pub fn give(&self, outcome: Result<Bytes, Error>) -> bool {
        let is_first = self.give_unmeasured(outcome);
        if is_first && let Some(stats) = self.uncounted() {
            let now = moment(Instant::now().into_std());
            stats.durations().add(now.saturating_sub(self.term.sent));
        }
        is_first
    }

    /// Counts requests for the operation from now on, because an instance of the receiver serves it.
    pub(crate) fn count_from_now(&self, operations: &Operations) {
        self.route.stats.get_or_init(|| operations.of(&self.route.operation));
    }

    /// Notes the instance that takes the request now, and whether its peer is a canary, with these counts.
    #[inline]
    pub(crate) fn take(&self, instance: InstanceId, by_canary: bool, operations: &Operations) {
        self.taker.store(instance.0, Ordering::Release);
        if by_canary {
            self.route.by_canary.get_or_init(|| operations.by_canary(&self.route.operation));
        }
        self.by_canary.store(by_canary, Ordering::Relaxed);
    }

    /// Returns the counts that the request goes to, if an instance of the receiver is known to serve the operation.
    #[inline]
    pub fn stats(&self) -> Option<&Arc<OperationStats>> {
        let is_by_canary = self.by_canary.load(Ordering::Relaxed);
        if is_by_canary { self.route.by_canary.get() } else { self.route.stats.get() }
    }

    /// The counts that the request goes to, unless it is counted: its deadline may pass before it is answered then.
    fn uncounted(&self) -> Option<&Arc<OperationStats>> {
        self.stats().filter(|_| !self.is_counted.load(Ordering::Acquire))
    }

    /// Gives the outcome to the sender, without counting how long the request took. The caller counts that with the
    /// time that it reads next. Returns false if the wait had ended before.
    ///
    /// If the answer is too large for the sender, the outcome is an error instead.
    pub fn give_unmeasured(&self, outcome: Result<Bytes, Error>) -> bool {
        if !self.end() {
            return false;
        }
        let allowed = self.max_answer;
        let outcome = outcome.and_then(|payload| match payload.len() as u64 {
            bytes if bytes > allowed => Err(Error::TooLarge { bytes, allowed }),
            _ => Ok(payload),
        });
        if let Err(error) = &outcome
            && let Some(stats) = self.uncounted()
        {
            stats.count_failed(error);
        }
        self.hand_over(outcome);
        true
    }

    /// Counts that the request failed with this error, before [`give_counted`](Self::give_counted) gives it.
    pub fn count_failure(&self, error: &Error) {
        if let Some(stats) = self.stats().filter(|_| !self.is_done())
            && !self.is_counted.swap(true, Ordering::AcqRel)
        {
            stats.count_failed(error);
            stats.durations().add(moment(Instant::now().into_std()).saturating_sub(self.term.sent));
        }
    }

    /// Gives an error that is counted already to the sender.
    pub fn give_counted(&self, error: Error) {
        if self.end() {
            self.hand_over(Err(error));
        }
    }

    /// Hands the outcome over, once.
    #[inline]
    fn hand_over(&self, outcome: Result<Bytes, Error>) {
        self.end_span(outcome.as_ref().map_or_else(Error::case, |_| "ok"));
        match &self.to {
            ReplyTo::Slot(slot) => slot.fill(outcome),
            ReplyTo::Lane { sender, instance } => {
                let lost = sender.inbox().push_reply(Reply { id: self.id, outcome }, *instance);
                sender.count_lost(lost);
            }
        }
    }

    /// Ends the wait for a request that was not sent because of this error. Nobody gets an answer.
    pub(crate) fn withdraw(&self, error: &Error) {
        self.end();
        if let Some(stats) = self.stats() {
            stats.count_failed(error);
        }
        self.end_span(error.case());
    }

    pub(crate) fn slot(&self) -> Option<&Slot> {
        match &self.to {
            ReplyTo::Slot(slot) => Some(slot),
            ReplyTo::Lane { .. } => None,
        }
    }

    /// Ends the wait at its deadline with an error, unless it has ended before.
    pub(crate) fn expire(self: &Arc<Self>) {
        let error = if self.route.receiver.is_starting() {
            Error::NotReady(format!("`{}` is still starting", self.route.receiver.name()))
        } else {
            Error::Timeout
        };
        if self.give(Err(error)) {
            self.end_work();
            self.route.receiver.inbox().note_abandoned();
        }
    }

    pub(crate) fn key(&self) -> (Instant, MessageId) {
        (self.term.deadline, self.id)
    }

    #[inline]
    fn end_span(&self, outcome: &'static str) {
        if let Some(span) = &self.term.span {
            let Route { operation, receiver, .. } = &*self.route;
            span.end(What::Request(operation.clone()), self.sender, Some(receiver.name()), outcome);
        }
    }

    /// Marks the wait as ended. Returns true to the first caller only.
    fn end(&self) -> bool {
        // Loads first, which is cheaper than a swap: dropping an answered call comes here a second time.
        let first = !self.is_done() && !self.done.swap(true, Ordering::SeqCst);
        // `SeqCst` orders this with `ended()`: either `ended()` sees the end, or this sees that it watches.
        if first && self.is_watched.load(Ordering::SeqCst) {
            self.ended.notify_waiters();
        }
        first
    }
}

/// The place where a caller waits for one answer.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    outcome: Option<Result<Bytes, Error>>,
    task: Option<Waker>,
    is_over: bool,
}

impl Slot {
    pub(crate) async fn outcome(&self) -> Result<Bytes, Error> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Ends the caller's wait. An answer that is there or arrives later is dropped.
    pub(crate) fn close(&self) {
        let closed = SlotState { outcome: None, task: None, is_over: true };
        let forgotten = std::mem::replace(&mut *self.0.lock(), closed);
        drop(forgotten);
    }

    fn fill(&self, outcome: Result<Bytes, Error>) {
        let task = {
            let mut waiting = self.0.lock();
            if waiting.is_over {
                return;
            }
            waiting.outcome = Some(outcome);
            waiting.task.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Takes the outcome out if it is there. Otherwise leaves the waker of the one caller.
    fn poll(&self, context: &Context<'_>) -> Poll<Result<Bytes, Error>> {
        let mut waiting = self.0.lock();
        match waiting.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                let former = waiting.task.replace(context.waker().clone());
                drop(waiting);
                drop(former);
                Poll::Pending
            }
        }
    }
}

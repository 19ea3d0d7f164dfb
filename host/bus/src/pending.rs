//! Requests under way: who waits for which answer, and until when; and until when senders wait for room.
//!
//! A waiter is registered before its request is sent and is marked by whatever ends it first: the
//! answer, the deadline, the caller giving up, or the death of the receiver. It is taken out later, when it is
//! the next, or with many others. All deadlines share one timer, which is armed only while somebody waits.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{
    Error, MessageId, OperationId, Peer, PeerId, Reply, Term, inbox::ReaderId, request::Route, room::Room,
};

/// Deadlines that end requests before others run.
const AT_ONCE: usize = 64;

/// Waiters among which it is not worth while to look for those that have ended.
const FEW: usize = 64;

/// A deadline, and for what.
type Key = (Instant, MessageId);

/// Everybody who waits for an answer or for room, by deadline.
#[derive(Debug, Default)]
pub struct Pending {
    queue: Mutex<Queue>,
    /// Told when a deadline comes before the time for which the timer is armed.
    earlier: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// With those that have ended and not been taken out: most end long before their deadline, and each is taken
    /// out when it is the next, or with many others.
    waiters: BinaryHeap<Reverse<Entry>>,
    /// How many those must be before all that have ended are taken out.
    enough: usize,
    rooms: BTreeMap<Key, Arc<Room>>,
    armed: Option<Instant>,
    /// Main has ended: nobody would answer, or notice the deadline.
    closed: bool,
}

#[derive(Debug)]
struct Entry(Arc<Waiter>);

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.key().cmp(&other.0.key())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Entry {}

/// Who hears that its deadline has passed.
enum Due {
    Waiter(Arc<Waiter>),
    Room(Arc<Room>),
}

impl Pending {
    pub(super) fn register(&self, waiter: Waiter) -> Arc<Waiter> {
        let waiter = Arc::new(waiter);
        let mut queue = self.queue();
        if queue.closed {
            drop(queue);
            waiter.complete(Err(Error::PeerGone));
            return waiter;
        }
        // Two, so that they become fewer.
        let ended = [queue.pop_ended(), queue.pop_ended()];
        queue.waiters.push(Reverse(Entry(waiter.clone())));
        let others = (queue.waiters.len() > queue.enough.max(FEW)).then(|| queue.clear_away());
        self.arm(queue, waiter.term.deadline);
        // Not under the lock: what a waiter holds may end others.
        drop((ended, others));
        waiter
    }

    /// Tells the room when this deadline passes, unless that is forgotten before.
    pub(super) fn watch(&self, key: Key, room: Arc<Room>) {
        let mut queue = self.queue();
        if queue.closed {
            drop(queue);
            return room.expire();
        }
        queue.rooms.insert(key, room);
        self.arm(queue, key.0);
    }

    pub(super) fn forget(&self, key: Key) {
        self.queue().rooms.remove(&key);
    }

    pub(super) fn len(&self) -> usize {
        let queue = self.queue();
        queue.waiters.iter().filter(|Reverse(Entry(waiter))| !waiter.is_done()).count() + queue.rooms.len()
    }

    /// Ends all who wait, and all who will.
    pub(super) fn close(&self) {
        let (waiters, rooms) = {
            let mut queue = self.queue();
            queue.closed = true;
            (std::mem::take(&mut queue.waiters), std::mem::take(&mut queue.rooms))
        };
        for Reverse(Entry(waiter)) in waiters {
            waiter.complete(Err(Error::PeerGone));
        }
        rooms.values().for_each(|room| room.expire());
    }

    pub(super) async fn run(&self) {
        loop {
            // The timer stays armed when what it was armed for has been answered: under load the
            // next deadline is later, and re-arming for each request would cost a wakeup each.
            let (next, more) = self.expire(Instant::now());
            if more {
                tokio::task::yield_now().await;
                continue;
            }
            match next {
                None => self.earlier.notified().await,
                Some(next) => tokio::select! {
                    () = sleep_until(next) => {}
                    () = self.earlier.notified() => {}
                },
            }
        }
    }

    /// Ends what is due by `now`, up to [`AT_ONCE`]; returns the next deadline, and whether more is due.
    fn expire(&self, now: Instant) -> (Option<Instant>, bool) {
        for _ in 0..AT_ONCE {
            let due = {
                let mut queue = self.queue();
                match queue.pop_due(now) {
                    Ok(due) => due,
                    Err(next) => {
                        queue.armed = next;
                        return (next, false);
                    }
                }
            };
            match due {
                Due::Waiter(waiter) => waiter.expire(),
                Due::Room(room) => room.expire(),
            }
        }
        (Some(now), true)
    }

    /// Sees to it that the timer fires by this deadline.
    fn arm(&self, mut queue: MutexGuard<'_, Queue>, deadline: Instant) {
        if queue.armed.is_none_or(|armed| deadline < armed) {
            queue.armed = Some(deadline);
            self.earlier.notify_one();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The first whose deadline has passed by `now`, or the next deadline.
    fn pop_due(&mut self, now: Instant) -> Result<Due, Option<Instant>> {
        // An ended one is no reason for a timer.
        let is_due =
            |Reverse(Entry(waiter)): &Reverse<Entry>| waiter.is_done() || waiter.term.deadline <= now;
        if self.waiters.peek().is_some_and(is_due)
            && let Some(Reverse(Entry(waiter))) = self.waiters.pop()
        {
            return Ok(Due::Waiter(waiter));
        }
        if let Some(room) = self.rooms.first_entry().filter(|room| room.key().0 <= now) {
            return Ok(Due::Room(room.remove()));
        }
        let waiter = self.waiters.peek().map(|Reverse(Entry(waiter))| waiter.term.deadline);
        let room = self.rooms.first_key_value().map(|((deadline, _), _)| *deadline);
        Err(waiter.into_iter().chain(room).min())
    }

    /// Takes out the next waiter if it has ended.
    fn pop_ended(&mut self) -> Option<Reverse<Entry>> {
        let has_ended = self.waiters.peek().is_some_and(|Reverse(Entry(waiter))| waiter.is_done());
        if has_ended { self.waiters.pop() } else { None }
    }

    /// Takes out the waiters that have ended, for the caller to drop.
    fn clear_away(&mut self) -> Vec<Reverse<Entry>> {
        let all = std::mem::take(&mut self.waiters).into_iter();
        let (ended, waiting): (_, Vec<_>) = all.partition(|Reverse(Entry(waiter))| waiter.is_done());
        self.enough = 2 * waiting.len();
        self.waiters = waiting.into();
        ended
    }
}

/// Somebody who waits for one answer.
#[derive(Debug)]
pub struct Waiter {
    id: MessageId,
    sender: PeerId,
    term: Term,
    route: Arc<Route>,
    /// The largest payload that the caller may handle.
    max_answer: u64,
    to: ReplyTo,
    done: AtomicBool,
    /// Of a receiver that wants to know when nobody waits any more.
    receiver_task: AtomicWaker,
    has_receiver_task: AtomicBool,
}

/// Where an answer goes.
#[derive(Debug)]
pub(super) enum ReplyTo {
    /// A caller that waits for just this.
    Slot(Slot),
    /// The replies lane of whoever sent the request, for the instance that did.
    Lane { sender: Arc<Peer>, reader: ReaderId },
}

/// Where a caller waits for just one answer.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    outcome: Option<Result<Bytes, Error>>,
    task: Option<Waker>,
    /// Nobody does any more.
    is_over: bool,
}

impl Slot {
    /// Waits for the answer.
    pub(super) async fn outcome(&self) -> Result<Bytes, Error> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Nobody waits any more: an answer that is there or on its way is forgotten.
    pub(super) fn close(&self) {
        let closed = Waiting { outcome: None, task: None, is_over: true };
        let forgotten = std::mem::replace(&mut *self.waiting(), closed);
        drop(forgotten);
    }

    fn fill(&self, outcome: Result<Bytes, Error>) {
        let task = {
            let mut waiting = self.waiting();
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

    /// Takes the outcome out: it is for one caller, once.
    fn poll(&self, context: &Context<'_>) -> Poll<Result<Bytes, Error>> {
        let mut waiting = self.waiting();
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

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    pub(super) fn new(
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
            receiver_task: AtomicWaker::new(),
            has_receiver_task: AtomicBool::new(false),
        }
    }

    pub fn id(&self) -> MessageId {
        self.id
    }

    pub(super) fn sender(&self) -> PeerId {
        self.sender
    }

    /// Who is to answer.
    pub fn receiver(&self) -> PeerId {
        self.route.receiver.id()
    }

    pub(super) fn operation(&self) -> &OperationId {
        &self.route.operation
    }

    pub(super) fn term(&self) -> Term {
        self.term
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    /// Ends with it, for the one task of the receiver's that asks.
    pub async fn ended(&self) {
        poll_fn(|context| {
            self.receiver_task.register(context.waker());
            self.has_receiver_task.store(true, Ordering::SeqCst);
            if self.is_done() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Hands over the answer; false if it was ended before.
    pub(super) fn complete(&self, outcome: Result<Bytes, Error>) -> bool {
        if !self.end() {
            return false;
        }
        let allowed = self.max_answer;
        let outcome = outcome.and_then(|payload| match payload.len() as u64 {
            bytes if bytes > allowed => Err(Error::TooLarge { bytes, allowed }),
            _ => Ok(payload),
        });
        match &self.to {
            ReplyTo::Slot(slot) => slot.fill(outcome),
            ReplyTo::Lane { sender, reader } => {
                let lost = sender.inbox().push_reply(Reply { id: self.id, outcome }, *reader);
                sender.count_lost(lost);
            }
        }
        true
    }

    /// Ends it without an answer: nobody wants it any more. False if it was ended before: its answer
    /// is on its way.
    pub fn cancel(&self) -> bool {
        let first = self.end();
        if first {
            self.route.receiver.inbox().note_abandoned();
            if let ReplyTo::Lane { sender, reader } = &self.to {
                sender.inbox().expect_no_reply(*reader);
            }
        }
        first
    }

    /// Ends what was never sent.
    pub(super) fn withdraw(&self) {
        self.end();
    }

    pub(super) fn slot(&self) -> Option<&Slot> {
        match &self.to {
            ReplyTo::Slot(slot) => Some(slot),
            ReplyTo::Lane { .. } => None,
        }
    }

    fn expire(&self) {
        let error = if self.route.receiver.is_starting() {
            Error::NotReady(format!("`{}` is still starting", self.route.receiver.name()))
        } else {
            Error::Timeout
        };
        if self.complete(Err(error)) {
            self.route.receiver.inbox().note_abandoned();
        }
    }

    /// Marks it ended; true for the first caller alone.
    fn end(&self) -> bool {
        // Looked at first: whoever drops a call that was answered asks once more.
        let first = !self.is_done() && !self.done.swap(true, Ordering::SeqCst);
        // In one order with who asks: it sees that this has ended, or is seen here. Few ask.
        if first && self.has_receiver_task.load(Ordering::SeqCst) {
            self.receiver_task.wake();
        }
        first
    }

    fn key(&self) -> Key {
        (self.term.deadline, self.id)
    }
}

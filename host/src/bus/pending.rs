//! Requests under way: who waits for which answer, and until when; and until when senders wait for room.
//!
//! A waiter is registered before its request is sent and is removed by whatever ends it first: the
//! answer, the deadline, the caller giving up, or the death of the receiver. All deadlines share one
//! ordered queue and one timer, which is armed only while somebody waits.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{Error, MessageId, Peer, Reply, inbox::ReaderId, room::Room};

/// Deadlines that end requests before others run.
const AT_ONCE: usize = 64;

/// Who waits, and hears when the deadline passes.
#[derive(Clone, Debug)]
pub(super) enum Timed {
    /// For an answer.
    Waiter(Arc<Waiter>),
    /// For room.
    Room(Arc<Room>),
}

/// Everybody who waits for an answer or for room, by deadline.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    queue: Mutex<Queue>,
    /// Told when a deadline comes before the time for which the timer is armed.
    earlier: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiters: BTreeMap<(Instant, MessageId), Timed>,
    armed: Option<Instant>,
    /// Main has ended: nobody would answer, or notice the deadline.
    closed: bool,
}

impl Pending {
    pub(super) fn register(self: &Arc<Self>, waiter: Waiter) -> Arc<Waiter> {
        let waiter = Arc::new(waiter);
        self.watch(waiter.key(), Timed::Waiter(waiter.clone()));
        waiter
    }

    /// Says so when this deadline passes, unless that is forgotten before.
    pub(super) fn watch(&self, key: (Instant, MessageId), waiter: Timed) {
        let mut queue = self.queue();
        if queue.closed {
            drop(queue);
            return waiter.close();
        }
        queue.waiters.insert(key, waiter);
        if queue.armed.is_none_or(|armed| key.0 < armed) {
            queue.armed = Some(key.0);
            self.earlier.notify_one();
        }
    }

    pub(super) fn forget(&self, key: (Instant, MessageId)) {
        self.queue().waiters.remove(&key);
    }

    pub(super) fn len(&self) -> usize {
        self.queue().waiters.len()
    }

    /// Ends all who wait, and all who will.
    pub(super) fn close(&self) {
        let waiters = {
            let mut queue = self.queue();
            queue.closed = true;
            std::mem::take(&mut queue.waiters)
        };
        waiters.values().for_each(Timed::close);
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
                match queue.waiters.first_key_value() {
                    Some((&(deadline, id), Timed::Room(room))) if deadline <= now => {
                        let room = room.clone();
                        queue.waiters.remove(&(deadline, id));
                        Timed::Room(room)
                    }
                    Some((&(deadline, _), waiter)) if deadline <= now => waiter.clone(),
                    next => {
                        let next = next.map(|(&(deadline, _), _)| deadline);
                        queue.armed = next;
                        return (next, false);
                    }
                }
            };
            match due {
                Timed::Waiter(waiter) => waiter.expire(),
                Timed::Room(room) => room.expire(),
            }
        }
        (Some(now), true)
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timed {
    /// Main has ended.
    fn close(&self) {
        match self {
            Self::Waiter(waiter) => {
                waiter.complete(Err(Error::PeerGone));
            }
            Self::Room(room) => room.expire(),
        }
    }
}

/// Somebody who waits for one answer.
#[derive(Debug)]
pub(crate) struct Waiter {
    id: MessageId,
    deadline: Instant,
    receiver: Arc<Peer>,
    /// The largest payload that the caller may handle.
    max_answer: u64,
    to: ReplyTo,
    done: AtomicBool,
    /// Of a receiver that wants to know when nobody waits any more.
    receiver_task: AtomicWaker,
    pending: Arc<Pending>,
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
pub(super) struct Slot {
    outcome: OnceLock<Result<Bytes, Error>>,
    waker: AtomicWaker,
}

impl Waiter {
    pub(super) fn new(
        id: MessageId,
        deadline: Instant,
        receiver: Arc<Peer>,
        max_answer: u64,
        to: ReplyTo,
        pending: Arc<Pending>,
    ) -> Self {
        Self {
            id,
            deadline,
            receiver,
            max_answer,
            to,
            done: AtomicBool::new(false),
            receiver_task: AtomicWaker::new(),
            pending,
        }
    }

    pub(crate) fn id(&self) -> MessageId {
        self.id
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Ends with it, for the one task of the receiver's that asks.
    pub(crate) async fn ended(&self) {
        poll_fn(|context| {
            self.receiver_task.register(context.waker());
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
            ReplyTo::Slot(slot) => {
                // Cannot be set already: `end` lets one caller through.
                let _already_set = slot.outcome.set(outcome);
                slot.waker.wake();
            }
            ReplyTo::Lane { sender, reader } => {
                let lost = sender.inbox().push_reply(Reply { id: self.id, outcome }, *reader);
                sender.count_lost(lost);
            }
        }
        true
    }

    /// Ends it without an answer: nobody wants it any more. False if it was ended before: its answer
    /// is on its way.
    pub(crate) fn cancel(&self) -> bool {
        let first = self.end();
        if first {
            self.receiver.inbox().note_abandoned();
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

    /// Waits for the answer, where the waiter is a slot.
    pub(super) async fn outcome(&self, slot: &Slot) -> Result<Bytes, Error> {
        poll_fn(|context| {
            slot.waker.register(context.waker());
            match slot.outcome.get() {
                Some(outcome) => Poll::Ready(outcome.clone()),
                None => Poll::Pending,
            }
        })
        .await
    }

    pub(super) fn slot(&self) -> Option<&Slot> {
        match &self.to {
            ReplyTo::Slot(slot) => Some(slot),
            ReplyTo::Lane { .. } => None,
        }
    }

    fn expire(&self) {
        let error = if self.receiver.is_starting() {
            Error::NotReady(format!("`{}` is still starting", self.receiver.name()))
        } else {
            Error::Timeout
        };
        if self.complete(Err(error)) {
            self.receiver.inbox().note_abandoned();
        }
    }

    /// Marks it ended and takes it out of the queue; true for the first caller alone.
    fn end(&self) -> bool {
        let first = !self.done.swap(true, Ordering::AcqRel);
        if first {
            self.pending.forget(self.key());
            self.receiver_task.wake();
        }
        first
    }

    fn key(&self) -> (Instant, MessageId) {
        (self.deadline, self.id)
    }
}

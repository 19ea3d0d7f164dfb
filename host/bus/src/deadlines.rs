//! The deadlines of waiters for answers and of senders that wait for room.
//!
//! A waiter is registered before its caller waits. The end of the wait only marks the waiter as ended. It is removed
//! later, when its deadline is the next, or with all other ended ones. All deadlines share one timer, which is not
//! armed again once nothing waits.
//!
//! Knows nothing of peers or messages.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{id::MessageId, room::Room, waiter::Waiter};
use weir_names::Error;

/// How many waits end in one go before other tasks get a turn.
const AT_ONCE: usize = 64;

/// Up to this many waiters, ended ones are not searched for.
const FEW: usize = 64;

type Key = (Instant, MessageId);

#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    queue: Mutex<DeadlineTable>,
    /// Notified when a deadline comes before the armed time, or no time is armed.
    earlier: Notify,
}

#[derive(Debug, Default)]
struct DeadlineTable {
    /// Includes ended ones: most end long before their deadline.
    waiters: BinaryHeap<Reverse<Entry>>,
    /// Above this many waiters, and above [`FEW`], all ended ones are taken out.
    enough: usize,
    rooms: BTreeMap<Key, Arc<Room>>,
    armed: Option<Instant>,
    /// Main has ended: nothing would end a new wait, so it ends at once.
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

enum Due {
    Waiter(Arc<Waiter>),
    Room(Arc<Room>),
}

impl Deadlines {
    /// Ends the waiter with an error at its deadline, unless it has ended before. Ends it at once if the bus is closed.
    pub(crate) fn register(&self, waiter: &Arc<Waiter>) {
        let mut queue = self.queue.lock();
        if queue.closed {
            drop(queue);
            waiter.give(Err(Error::PeerGone));
            return;
        }
        // Up to two ended waiters go for each waiter added, so that ended ones become fewer.
        let ended = [queue.pop_ended(), queue.pop_ended()];
        queue.waiters.push(Reverse(Entry(waiter.clone())));
        let others = (queue.waiters.len() > queue.enough.max(FEW)).then(|| queue.clear_away());
        self.arm(queue, waiter.term().deadline);
        // Outside the lock: dropping a waiter may end others.
        drop((ended, others));
    }

    /// Expires `room` at the deadline in `key`, unless [`remove_room`](Self::remove_room) comes before.
    pub(crate) fn register_room(&self, key: Key, room: Arc<Room>) {
        let mut queue = self.queue.lock();
        if queue.closed {
            drop(queue);
            return room.expire();
        }
        queue.rooms.insert(key, room);
        self.arm(queue, key.0);
    }

    pub(crate) fn remove_room(&self, key: Key) {
        self.queue.lock().rooms.remove(&key);
    }

    pub(crate) fn len(&self) -> usize {
        let queue = self.queue.lock();
        queue.waiters.iter().filter(|Reverse(Entry(waiter))| !waiter.is_done()).count() + queue.rooms.len()
    }

    /// Ends all waits, present and future.
    pub(crate) fn close(&self) {
        let (waiters, rooms) = {
            let mut queue = self.queue.lock();
            queue.closed = true;
            (std::mem::take(&mut queue.waiters), std::mem::take(&mut queue.rooms))
        };
        self.earlier.notify_one();
        for Reverse(Entry(waiter)) in waiters {
            waiter.give(Err(Error::PeerGone));
        }
        rooms.values().for_each(|room| room.expire());
    }

    /// Ends waits at their deadlines, until [`close`](Self::close).
    pub(crate) async fn run(&self) {
        loop {
            // The timer stays armed after its request was answered. Under load the next deadline is later, and arming
            // again for each request would cost a wakeup each.
            let (next, more) = self.expire(Instant::now());
            if more {
                tokio::task::yield_now().await;
                continue;
            }
            match next {
                None if self.queue.lock().closed => return,
                None => self.earlier.notified().await,
                Some(next) => tokio::select! {
                    () = sleep_until(next) => {}
                    () = self.earlier.notified() => {}
                },
            }
        }
    }

    /// Ends what is due by `now`, up to [`AT_ONCE`]; returns the next deadline, and whether more may be due.
    fn expire(&self, now: Instant) -> (Option<Instant>, bool) {
        for _ in 0..AT_ONCE {
            let due = {
                let mut queue = self.queue.lock();
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

    /// Makes the timer fire by this deadline.
    fn arm(&self, mut queue: MutexGuard<'_, DeadlineTable>, deadline: Instant) {
        if queue.armed.is_none_or(|armed| deadline < armed) {
            queue.armed = Some(deadline);
            self.earlier.notify_one();
        }
    }
}

impl DeadlineTable {
    /// Takes out a wait that is due by `now` or has ended. If there is none, fails with the next deadline.
    fn pop_due(&mut self, now: Instant) -> Result<Due, Option<Instant>> {
        // An ended waiter needs no timer.
        let is_due =
            |Reverse(Entry(waiter)): &Reverse<Entry>| waiter.is_done() || waiter.term().deadline <= now;
        if self.waiters.peek().is_some_and(is_due)
            && let Some(Reverse(Entry(waiter))) = self.waiters.pop()
        {
            return Ok(Due::Waiter(waiter));
        }
        if let Some(room) = self.rooms.first_entry().filter(|room| room.key().0 <= now) {
            return Ok(Due::Room(room.remove()));
        }
        let waiter = self.waiters.peek().map(|Reverse(Entry(waiter))| waiter.term().deadline);
        let room = self.rooms.first_key_value().map(|((deadline, _), _)| *deadline);
        Err(waiter.into_iter().chain(room).min())
    }

    /// Takes out the waiter with the next deadline, if it has ended.
    fn pop_ended(&mut self) -> Option<Reverse<Entry>> {
        let has_ended = self.waiters.peek().is_some_and(|Reverse(Entry(waiter))| waiter.is_done());
        if has_ended { self.waiters.pop() } else { None }
    }

    /// Takes out all ended waiters, for the caller to drop.
    fn clear_away(&mut self) -> Vec<Reverse<Entry>> {
        let all = std::mem::take(&mut self.waiters).into_iter();
        let (ended, waiting): (_, Vec<_>) = all.partition(|Reverse(Entry(waiter))| waiter.is_done());
        self.enough = 2 * waiting.len();
        self.waiters = waiting.into();
        ended
    }
}

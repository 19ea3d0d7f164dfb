//! One shared queue: waiting jobs, waiting readers, and jobs in hand.
//!
//! A job waits only while no waiting reader can take it. It goes to the waiting reader that has had the fewest jobs,
//! and to another if that reader leaves without it. A job counts in the capacity until it is done, so a job that is
//! given back always has room.
//!
//! Knows nothing of peers, grants or other queues, except the queue for its dead letters.

mod dead;
pub(crate) mod fate;
mod line;
mod reader;
mod state;
pub(crate) mod taken;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use parking_lot::Mutex;
use weir_names::{ContractName, Error, QueueName, QueuePolicy};
use weir_reports::QueueStatus;

pub(crate) use self::fate::Fate;
#[cfg(test)]
pub(crate) use self::state::JobCounts;
pub use self::{
    reader::JobReader,
    state::{QueueSettings, QueuedJob},
};
use self::{reader::wake, state::QueueState};
use crate::{
    bus::{OnLoss, is_to_be_told},
    room::Room,
};

/// A queue that any number of senders put jobs into and any number of readers take them from.
pub struct SharedQueue {
    name: QueueName,
    on_loss: Arc<OnLoss>,
    state: Mutex<QueueState>,
    /// The queue that gets the dead letters. `state` is never locked while this is locked.
    dead_letter: Mutex<Weak<SharedQueue>>,
}

/// Where a job went.
pub(crate) enum Placed {
    /// The job is in the queue, or the queue's policy dropped it.
    In,
    /// The job waits for room, and this tells when it has some.
    Waiting(Arc<Room>),
    /// The provider of this contract must keep the payload first.
    Stored(Box<(ContractName, Bytes)>),
}

impl fmt::Debug for SharedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQueue")
            .field("name", &self.name)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl SharedQueue {
    pub(crate) fn new(name: QueueName, settings: QueueSettings, on_loss: Arc<OnLoss>) -> Arc<Self> {
        let (state, dead_letter) = (Mutex::new(QueueState::new(settings)), Mutex::default());
        Arc::new(Self { name, on_loss, state, dead_letter })
    }

    /// Returns the queue's name, as configured.
    #[inline]
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// Whether the queue takes no more jobs: it is no longer configured, or Main has ended.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Returns the bytes of the largest payload that the queue takes.
    pub fn max_payload(&self) -> u64 {
        self.state.lock().allowed()
    }

    /// Returns up to `max` of the waiting jobs, in the order in which they wait.
    pub fn jobs(&self, max: usize) -> Vec<QueuedJob> {
        self.state
            .lock()
            .waiting
            .first(max)
            .into_iter()
            .flatten()
            .take(max)
            .map(|job| (**job).clone())
            .collect()
    }

    /// Returns the queue's settings and counts as they are now.
    pub fn status(&self) -> QueueStatus {
        let state = self.state.lock();
        let QueueState { settings, counts, .. } = &*state;
        QueueStatus {
            queue: self.name.clone(),
            configured: !state.is_closed,
            waiting: state.waiting.len() as u64,
            in_hand: state.in_hand as u64,
            messages_limit: settings.messages,
            bytes: state.bytes,
            bytes_limit: settings.bytes,
            when_full: settings.when_full.name().into(),
            max_deliveries: settings.max_deliveries,
            dead_letter: self.dead_letter().map(|queue| queue.name.clone()),
            idle_readers: state.readers.len() as u64,
            blocked: state.blocked.len() as u64,
            put_rate: state.put_rate.now(),
            done_rate: state.done_rate.now(),
            put: counts.put,
            delivered: counts.delivered,
            done: counts.done,
            returned: counts.returned,
            dead: counts.dead,
            shed: counts.shed,
            refused: counts.refused,
        }
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> JobCounts {
        self.state.lock().counts
    }

    /// Opens the queue with these settings. They decide whether jobs that wait for room get in, wait on or are turned
    /// away.
    pub(crate) fn set(&self, settings: QueueSettings, dead_letter: Weak<Self>) {
        let mut state = self.state.lock();
        state.settings = settings;
        *self.dead_letter.lock() = dead_letter;
        state.is_closed = false;
        let (before, allowed, blocked) = (state.lost(), state.allowed(), state.blocked.len());
        state.blocked.retain(|(_, job)| job.payload.len() as u64 <= allowed);
        state.counts.refused += (blocked - state.blocked.len()) as u64;
        let mut woken = state.admit();
        if state.settings.when_full != QueuePolicy::Block {
            for (ticket, job) in std::mem::take(&mut state.blocked) {
                if let Ok(reader) = state.place(job) {
                    woken.extend(reader);
                    ticket.admit();
                }
            }
        }
        let after = state.lost();
        drop(state);
        wake(woken);
        self.tell(before, after);
    }

    /// Closes the queue: it takes no more jobs, and senders that wait for room are turned away.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let turned_away = std::mem::take(&mut state.blocked);
        let readers: Vec<_> = state.readers.iter().cloned().collect();
        // Jobs whose senders wait for their end are dropped: their senders put them again.
        let taken_back = state.extract(|job| job.fate.is_some());
        drop(state);
        drop((turned_away, taken_back));
        wake(readers);
    }

    /// Whether the queue is configured or holds jobs.
    pub(crate) fn is_there(&self) -> bool {
        let state = self.state.lock();
        !state.is_closed || state.in_hand > 0 || !state.waiting.is_empty()
    }

    /// Puts a job. Without room, the policy decides. If a provider keeps the queue's jobs, only a job that `is_from`
    /// that provider gets in.
    pub(crate) fn put(
        &self,
        job: QueuedJob,
        is_from: impl FnOnce(&ContractName) -> bool,
    ) -> Result<Placed, Error> {
        let mut state = self.state.lock();
        self.check(&state, &job)?;
        if let Some(store) = state.settings.store.as_ref().filter(|store| !is_from(store)) {
            return Ok(Placed::Stored(Box::new((store.clone(), job.payload))));
        }
        if state.settings.when_full == QueuePolicy::Block
            && (!state.blocked.is_empty() || !state.has_room(&job))
        {
            let room = Arc::<Room>::default();
            state.blocked.push_back((room.ticket(), job));
            return Ok(Placed::Waiting(room));
        }
        let before = state.lost();
        let Ok(woken) = state.place(job) else {
            return Err(Error::Overloaded(self.name.to_string()));
        };
        let after = state.lost();
        drop(state);
        wake(woken);
        self.tell(before, after);
        Ok(Placed::In)
    }

    /// Removes the waiting job with this fate, because its sender has taken it back.
    pub(crate) fn take_back(&self, fate: &Fate) {
        let mut state = self.state.lock();
        let Some(waiting) = state.waiting.first(usize::MAX) else { return };
        let is_it = |watched: &Arc<fate::Watched>| watched.is_of(fate);
        let taken_back = take_near_an_end(waiting, |job| job.fate.as_ref().is_some_and(is_it));
        let Some(job) = taken_back else { return };
        state.bytes -= job.bytes();
        let woken = state.admit();
        drop(state);
        wake(woken);
    }

    /// Removes the job that waits for this room, because its sender waits no more.
    pub(crate) fn withdraw(&self, room: &Arc<Room>) {
        let mut state = self.state.lock();
        let withdrawn = take_near_an_end(&mut state.blocked, |(ticket, _)| ticket.is_of(room));
        state.counts.refused += u64::from(withdrawn.is_some());
        let woken = state.admit();
        drop(state);
        wake(woken);
    }

    /// Returns the error for a job that comes to a closed queue.
    pub(crate) fn closed(&self) -> Error {
        Error::NoProvider(format!(
            "queue `{}` takes no jobs any more: it is no longer configured, or Main ends",
            self.name
        ))
    }

    /// Fails if the queue is closed, or the job is too large for it or for all readers.
    fn check(&self, state: &QueueState, job: &QueuedJob) -> Result<(), Error> {
        if state.is_closed {
            return Err(self.closed());
        }
        let (bytes, allowed) = (job.payload.len() as u64, state.allowed());
        if bytes > allowed {
            return Err(Error::TooLarge { bytes, allowed });
        }
        Ok(())
    }

    /// Reports the queue's losses, if they have reached or passed a power of two.
    fn tell(&self, before: u64, after: u64) {
        if is_to_be_told(before, after) {
            (self.on_loss)(&format!("queue {}", self.name), after);
        }
    }

    fn dead_letter(&self) -> Option<Arc<Self>> {
        self.dead_letter.lock().upgrade()
    }
}

/// Removes the one item for which `is_meant`, if there is one. Looks near both ends first: items that one sender takes
/// back together lie there, so taking back many does not cost the square of their number.
fn take_near_an_end<T>(items: &mut VecDeque<T>, is_meant: impl Fn(&T) -> bool) -> Option<T> {
    let last = items.len().checked_sub(1)?;
    let mut from_both_ends = (0..items.len()).map(|step| match step % 2 {
        0 => step / 2,
        _ => last - step / 2,
    });
    let at = from_both_ends.find(|at| items.get(*at).is_some_and(&is_meant))?;
    items.remove(at)
}

//! What becomes of a job, for a sender that waits until it is finished.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tokio::sync::Notify;

/// The sender's side: it waits for the job's end, or takes the job back.
#[derive(Debug)]
pub(crate) struct Fate(Arc<State>);

/// The job's side. When all clones of the job are dropped without another end, the sender hears that the job is gone.
#[derive(Debug)]
pub(crate) struct Watched(Arc<State>);

/// Why no reader will finish the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The job was delivered too often or fits no reader, and is a dead letter.
    Dead,
    /// The job is in no queue any more.
    Gone,
}

#[derive(Debug)]
struct State {
    code: AtomicU8,
    known: Notify,
}

const OPEN: u8 = 0;
const DONE: u8 = 1;
const DEAD: u8 = 2;
const GONE: u8 = 3;
const GIVEN_UP: u8 = 4;

pub(crate) fn new() -> (Fate, Arc<Watched>) {
    let state = Arc::new(State { code: AtomicU8::new(OPEN), known: Notify::new() });
    (Fate(state.clone()), Arc::new(Watched(state)))
}

impl Fate {
    /// Waits for the job's end. Returns `Ok` once a reader has finished the job.
    pub(crate) async fn known(&self) -> Result<(), Lost> {
        loop {
            match self.0.code.load(Ordering::Acquire) {
                // Only one task waits, and `Notify` keeps one wake-up that comes before the wait.
                OPEN => self.0.known.notified().await,
                DONE => return Ok(()),
                DEAD => return Err(Lost::Dead),
                _ => return Err(Lost::Gone),
            }
        }
    }

    /// Notes that the sender takes the job back. Returns false if the job's end is known already.
    pub(crate) fn give_up(&self) -> bool {
        self.0.end(GIVEN_UP)
    }
}

impl Watched {
    pub(super) fn finish(&self) {
        self.0.end(DONE);
    }

    pub(super) fn die(&self) {
        self.0.end(DEAD);
    }

    pub(super) fn is_of(&self, fate: &Fate) -> bool {
        Arc::ptr_eq(&self.0, &fate.0)
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.0.code.load(Ordering::Acquire) == GIVEN_UP
    }
}

impl State {
    /// Sets the job's end, and wakes the sender. Returns false, and changes nothing, if there is an end already.
    fn end(&self, code: u8) -> bool {
        let first = self.code.compare_exchange(OPEN, code, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.known.notify_one();
        }
        first
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.end(GONE);
    }
}

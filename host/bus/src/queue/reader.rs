//! One that waits for a job, the job that it was handed, and how many it may have.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use super::job::QueuedJob;

/// Jobs by which a reader may be behind the others, and is served before them until it has had as many.
const BEHIND: u64 = 256;

/// Of a reader that has had none, and was in no line.
const NEW: u64 = u64::MAX;

/// One who waits for a job of one queue, and the job that it was handed.
pub struct JobReader {
    /// Bytes of the largest payload that it takes.
    max_payload: u64,
    /// How many more jobs it may have, with others.
    left: Option<Arc<AtomicUsize>>,
    /// Whether what it has is counted there.
    counts: AtomicBool,
    /// Jobs that it has had, as far as they count. Of the queue, under its lock.
    had: AtomicU64,
    handed: Mutex<Option<HandedJob>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for JobReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobReader").finish_non_exhaustive()
    }
}

impl JobReader {
    /// `left` is how many more jobs all readers that share it may have.
    pub fn new(
        max_payload: u64,
        left: Option<Arc<AtomicUsize>>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (counts, wake) = (AtomicBool::new(left.is_some()), Box::new(wake));
        let had = AtomicU64::new(NEW);
        Arc::new(Self { max_payload, left, counts, had, handed: Mutex::default(), wake })
    }

    /// Whether the jobs that it gets from now on are counted.
    pub fn count(&self, counts: bool) {
        self.counts.store(counts, Ordering::Relaxed);
    }

    /// Whether it was handed a job that it has not taken.
    #[inline]
    pub fn has_job(&self) -> bool {
        self.handed().is_some()
    }

    /// A permit for one more job; none if it may have no more.
    pub(super) fn permit(&self) -> Option<Permit> {
        let Some(left) = self.left.as_ref().filter(|_| self.counts.load(Ordering::Relaxed)) else {
            return Some(Permit(None));
        };
        let one_less = |left: usize| left.checked_sub(1);
        left.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less).ok()?;
        Some(Permit(Some(left.clone())))
    }

    pub(super) fn had(&self) -> u64 {
        self.had.load(Ordering::Relaxed)
    }

    /// It has one job more. One that is new counts as one that has had as many as the others.
    pub(super) fn count_one(&self, most: u64) -> u64 {
        let had = self.caught_up(most) + 1;
        self.set_had(had);
        had
    }

    /// Jobs that it counts as having had where others have had so many: who was away for long is not made up for all
    /// of that.
    pub(super) fn caught_up(&self, most: u64) -> u64 {
        match self.had() {
            NEW => most,
            had => had.max(most.saturating_sub(BEHIND)),
        }
    }

    pub(super) fn set_had(&self, jobs: u64) {
        self.had.store(jobs, Ordering::Relaxed);
    }

    pub(super) fn fits(&self, job: &QueuedJob) -> bool {
        job.payload.len() as u64 <= self.max_payload
    }

    #[inline]
    pub(super) fn handed(&self) -> MutexGuard<'_, Option<HandedJob>> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One job that a reader may have. Dropped, it may have another.
#[derive(Debug)]
pub(super) struct Permit(Option<Arc<AtomicUsize>>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(left) = &self.0 {
            left.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A job that a reader was handed and has not taken.
#[derive(Debug)]
pub(super) struct HandedJob(pub(super) QueuedJob, pub(super) Permit);

pub(super) fn wake(readers: impl IntoIterator<Item = Arc<JobReader>>) {
    for reader in readers {
        (reader.wake)();
    }
}

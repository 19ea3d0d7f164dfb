//! A reader that waits for a job: the job that it was handed, and how many more jobs it may have.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

use super::QueuedJob;

/// How many jobs a reader may be behind the others. A reader that is behind is served first until it has caught up.
const BEHIND: u64 = 256;

/// The count of a reader that has had no job and stood in no line.
const NEW: u64 = u64::MAX;

/// A reader that waits for jobs of one queue, and the job that it was handed.
pub struct JobReader {
    /// The name of the peer that reads.
    name: Arc<str>,
    max_payload: u64,
    /// How many more jobs the reader may have, shared with other readers. Without it, there is no bound.
    left: Option<Arc<AtomicUsize>>,
    /// Whether the reader's jobs count in `left`.
    counts: AtomicBool,
    /// How many jobs the reader has had, or [`NEW`]. After a long absence it counts as having had more. Guarded by the
    /// queue's lock.
    had: AtomicU64,
    pub(super) handed: Mutex<Option<HandedJob>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for JobReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobReader").finish_non_exhaustive()
    }
}

impl JobReader {
    /// Makes a reader of the peer with this name. `left` is how many more jobs all readers that share it may have.
    pub fn new(
        name: Arc<str>,
        max_payload: u64,
        left: Option<Arc<AtomicUsize>>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (counts, wake) = (AtomicBool::new(left.is_some()), Box::new(wake));
        let had = AtomicU64::new(NEW);
        Arc::new(Self { name, max_payload, left, counts, had, handed: Mutex::default(), wake })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Sets whether the reader's jobs count from now on against the number that it shares with other readers.
    pub fn count(&self, counts: bool) {
        self.counts.store(counts, Ordering::Relaxed);
    }

    /// Whether the reader was handed a job that it has not taken yet.
    #[inline]
    pub fn has_job(&self) -> bool {
        self.handed.lock().is_some()
    }

    /// Returns the job that the reader was handed and has not taken yet.
    #[cfg(test)]
    pub(crate) fn handed_job(&self) -> Option<QueuedJob> {
        self.handed.lock().as_ref().map(|HandedJob(job, _)| job.clone())
    }

    /// Returns a permit for one more job, or none if the reader may have no more.
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

    /// Counts one job more, and returns the new count. A new reader starts level with the others, at `most`.
    pub(super) fn count_one(&self, most: u64) -> u64 {
        let had = self.caught_up(most) + 1;
        self.set_had(had);
        had
    }

    /// Returns how many jobs the reader counts as having had, where others had at most `most`. The count is at most
    /// [`BEHIND`] behind, so that a reader which was away for long is not served first for long.
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
}

/// Permission for one job. Dropping it allows another.
#[derive(Debug)]
pub(super) struct Permit(Option<Arc<AtomicUsize>>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(left) = &self.0 {
            left.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[derive(Debug)]
pub(super) struct HandedJob(pub(super) QueuedJob, pub(super) Permit);

pub(super) fn wake(readers: impl IntoIterator<Item = Arc<JobReader>>) {
    for reader in readers {
        (reader.wake)();
    }
}

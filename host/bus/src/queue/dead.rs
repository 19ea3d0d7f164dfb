//! Jobs that come back unfinished, and dead letters: where they go, and how they return.

use std::time::Instant;

use parking_lot::MutexGuard;
use weir_metrics::moment;
use weir_names::Error;

use super::{QueuedJob, SharedQueue, reader::wake, state::QueueState};

impl SharedQueue {
    /// Puts a dead letter at the end of this queue, in which it died. Fails without room: no other job is dropped for
    /// it.
    pub(crate) fn put_back(&self, job: QueuedJob) -> Result<(), Error> {
        let mut state = self.state.lock();
        self.check(&state, &job)?;
        if !state.has_room(&job) {
            return Err(Error::Overloaded(self.name.to_string()));
        }
        state.count_put(moment(Instant::now()));
        let woken = state.add(job);
        drop(state);
        wake(woken);
        Ok(())
    }

    /// Puts jobs that were taken out back to the front, and lets in jobs that wait for room.
    pub(crate) fn restore(&self, jobs: Vec<QueuedJob>) {
        let mut state = self.state.lock();
        let mut woken = Vec::new();
        for job in jobs.into_iter().rev() {
            state.bytes += job.bytes();
            woken.extend(state.add_first(job));
        }
        woken.extend(state.admit());
        drop(state);
        wake(woken);
    }

    pub(crate) fn extract(&self, is_wanted: impl Fn(&QueuedJob) -> bool) -> Vec<QueuedJob> {
        self.state.lock().extract(is_wanted)
    }

    /// Makes dead letters of the waiting jobs that are too large for all readers.
    pub(crate) fn bury_unfit(&self) {
        let mut state = self.state.lock();
        let max_payload = state.settings.max_payload;
        let unfit = state.extract(|job| job.is_unfit(max_payload));
        let woken = state.admit();
        drop(state);
        wake(woken);
        unfit.into_iter().for_each(|job| self.die(job));
    }

    /// Puts a job in hand back to the front. If it `is_dead` or too large for all readers, it becomes a dead letter.
    pub(super) fn return_or_die(&self, mut state: MutexGuard<'_, QueueState>, job: QueuedJob, is_dead: bool) {
        // Such a job is dropped: its sender gave it up, or hears that the queue is closed and puts it again.
        let is_taken_back = job.is_given_up() || (job.fate.is_some() && state.is_closed);
        if !is_dead && !job.is_unfit(state.settings.max_payload) && !is_taken_back {
            let woken = state.add_first(job);
            drop(state);
            return wake(woken);
        }
        state.bytes -= job.bytes();
        let woken = state.admit();
        drop(state);
        wake(woken);
        if !is_taken_back {
            self.die(job);
        }
    }

    /// Moves a job that is already out of this queue to the queue for dead letters, or drops it if there is none.
    fn die(&self, mut job: QueuedJob) {
        if let Some(fate) = job.fate.take() {
            fate.die();
        }
        let mut state = self.state.lock();
        let before = state.lost();
        state.counts.dead += 1;
        let dead_letter = self.dead_letter();
        state.unburied += u64::from(dead_letter.is_none());
        let after = state.lost();
        drop(state);
        self.tell(before, after);
        if let Some(dead_letter) = dead_letter {
            job.died_in = Some(Box::new((self.name.clone(), job.deliveries)));
            job.deliveries = 0;
            dead_letter.bury(job);
        }
    }

    /// Takes in a dead letter. The oldest jobs give way to it, whatever this queue's own policy. The dead letter is
    /// lost if the queue is closed, or if it does not fit beside the jobs in hand.
    fn bury(&self, job: QueuedJob) {
        let mut state = self.state.lock();
        let before = state.lost();
        let mut woken = None;
        if state.is_closed || !state.has_room_beside_hands(&job) {
            state.counts.shed += 1;
        } else {
            state.drop_oldest_for(&job);
            state.count_put(moment(Instant::now()));
            woken = state.add(job);
        }
        let after = state.lost();
        drop(state);
        wake(woken);
        self.tell(before, after);
    }
}

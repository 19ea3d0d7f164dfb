//! The readers of a queue: those that stand in line for a job, and the peers to which they belong.

use std::sync::Arc;

use super::{
    SharedQueue,
    reader::{HandedJob, JobReader},
};
use crate::id::PeerId;

impl SharedQueue {
    /// One more reader of a peer's.
    pub fn join(&self, peer: PeerId) {
        *self.state().takers.entry(peer).or_default() += 1;
    }

    /// One fewer.
    pub fn part(&self, peer: PeerId) {
        let mut state = self.state();
        if let Some(readers) = state.takers.get_mut(&peer) {
            *readers -= 1;
            if *readers == 0 {
                state.takers.remove(&peer);
            }
        }
    }

    /// Peers that take.
    pub(crate) fn takers(&self) -> Vec<PeerId> {
        self.state().takers.keys().copied().collect()
    }

    /// The reader waits for a job, unless there is one.
    pub fn enlist(&self, reader: &Arc<JobReader>) {
        let mut state = self.state();
        if reader.has_job() {
            return;
        }
        let is_listed = state.readers.iter().any(|waiting| Arc::ptr_eq(waiting, reader));
        match state.take_for(reader) {
            Some(handed) => {
                *reader.handed() = Some(handed);
                state.readers.retain(|waiting| !Arc::ptr_eq(waiting, reader));
            }
            None if is_listed => {}
            None => {
                reader.set_had(reader.caught_up(state.most));
                let place = state.readers.partition_point(|other| other.had() <= reader.had());
                state.readers.insert(place, reader.clone());
            }
        }
    }

    /// The reader waits no longer. What it was handed stays with it; whether that is a job.
    pub fn delist(&self, reader: &Arc<JobReader>) -> bool {
        self.state().readers.retain(|waiting| !Arc::ptr_eq(waiting, reader));
        reader.has_job()
    }

    /// The reader takes no more: what it was handed and has not taken goes to another.
    pub fn leave(&self, reader: &Arc<JobReader>) {
        self.delist(reader);
        let mut state = self.state();
        let handed = reader.handed().take();
        if let Some(HandedJob(job, permit)) = handed {
            drop(permit);
            // It has not had it.
            reader.set_had(reader.had() - 1);
            state.release(&job);
            self.return_or_die(state, job, false);
        }
    }
}

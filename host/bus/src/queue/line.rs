//! The readers of a queue: the line for jobs, and the peers that the readers belong to.

use std::sync::Arc;

use super::{
    SharedQueue,
    reader::{HandedJob, JobReader},
};
use crate::id::PeerId;

impl SharedQueue {
    /// Counts one more reader of this peer.
    pub fn join(&self, peer: PeerId) {
        *self.state.lock().takers.entry(peer).or_default() += 1;
    }

    /// Counts one reader of this peer less.
    pub fn part(&self, peer: PeerId) {
        let mut state = self.state.lock();
        if let Some(readers) = state.takers.get_mut(&peer) {
            *readers -= 1;
            if *readers == 0 {
                state.takers.remove(&peer);
            }
        }
    }

    /// Returns the peers that have readers of this queue.
    pub(crate) fn takers(&self) -> Vec<PeerId> {
        self.state.lock().takers.keys().copied().collect()
    }

    /// Hands a waiting job to the reader, if there is one that it may have. Otherwise the reader joins the line. Does
    /// nothing for a reader that was handed a job and has not taken it.
    pub fn enlist(&self, reader: &Arc<JobReader>) {
        let mut state = self.state.lock();
        if reader.has_job() {
            return;
        }
        let is_listed = state.readers.iter().any(|waiting| Arc::ptr_eq(waiting, reader));
        match state.take_for(reader) {
            Some(handed) => {
                *reader.handed.lock() = Some(handed);
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

    /// Takes the reader out of the line. Returns whether it was handed a job, which it keeps.
    pub fn delist(&self, reader: &Arc<JobReader>) -> bool {
        self.state.lock().readers.retain(|waiting| !Arc::ptr_eq(waiting, reader));
        reader.has_job()
    }

    /// Takes the reader out of the line for good. A job that it was handed and has not taken goes to another reader.
    pub fn leave(&self, reader: &Arc<JobReader>) {
        self.delist(reader);
        let mut state = self.state.lock();
        let handed = reader.handed.lock().take();
        if let Some(HandedJob(job, permit)) = handed {
            drop(permit);
            // The job was counted when it was handed over, but the reader has not had it.
            reader.set_had(reader.had() - 1);
            state.release(&job);
            self.return_or_die(state, job, false);
        }
    }
}

//! The thread that reads: each round is a snapshot, or several.

use std::{sync::Arc, time::Instant};

use redb::{Database, ReadableDatabase};

use super::{Abandon, Job, Store};
use crate::{
    StoreError, entries,
    file::{ENTRIES, META, USAGE},
    work::{Found, Read, ReadOutcome, StoreUsage},
};

use super::writer::{AGAIN, TURN};

/// Reads of one snapshot.
const AT_ONCE: usize = 256;

impl Store {
    pub(super) fn read_all(self: Arc<Self>) {
        let _abandon = Abandon(&self, |store| drop(store.reads.abandon()));
        let began = Instant::now();
        loop {
            let jobs = self.reads.take(AT_ONCE, usize::MAX);
            if jobs.is_empty() {
                return;
            }
            self.read_some(jobs);
            if began.elapsed() >= TURN {
                // Others wait for the thread, too.
                return self.start(Self::read_all);
            }
        }
    }

    fn read_some(self: &Arc<Self>, jobs: Vec<Job<Read, ReadOutcome>>) {
        let mut waiting = jobs.into_iter();
        while waiting.len() > 0 {
            let read = self.with_database(|database| {
                self.check_missing().map(|()| self.snapshot(database, &mut waiting))
            });
            let error = match read {
                Ok(Ok(Ok(()))) => continue,
                Ok(Ok(Err(error))) => {
                    self.tell(format!("{} cannot be read: {error}", self.path.display()));
                    self.close_now();
                    StoreError::Io(error.to_string())
                }
                Ok(Err(error)) => {
                    // Nobody may write for long.
                    self.flush_in(AGAIN);
                    error
                }
                Err(error) => error.into(),
            };
            waiting.by_ref().for_each(|job| job.give(Err(error.clone())));
        }
    }

    /// Does some of the work: a write may wait for the end of the snapshot.
    fn snapshot(
        &self,
        database: &Database,
        jobs: &mut impl Iterator<Item = Job<Read, ReadOutcome>>,
    ) -> Result<(), redb::Error> {
        let began = Instant::now();
        let transaction = database.begin_read()?;
        let entries = transaction.open_table(ENTRIES)?;
        for Job { owner, work, answer } in jobs {
            if answer.is_closed() {
                continue;
            }
            let outcome = match work {
                Read::Usage => {
                    let row = transaction.open_table(META)?.get(USAGE)?.map(|row| row.value());
                    let (keys, bytes) = row.unwrap_or_default();
                    let file = self.path.metadata().map_or(0, |found| found.len());
                    Ok(Ok(Found::Usage(StoreUsage { keys, bytes, file })))
                }
                work => entries::read(&entries, &owner, work),
            };
            let (outcome, failed) = match outcome {
                Ok(outcome) => (outcome, None),
                Err(error) => (Err(StoreError::Io(error.to_string())), Some(error)),
            };
            Job { owner, work: (), answer }.give(outcome);
            if let Some(error) = failed {
                return Err(error.into());
            }
            if began.elapsed() >= TURN {
                break;
            }
        }
        Ok(())
    }
}

impl<W, O> Job<W, O> {
    /// Answers, unless its caller has given up.
    pub(super) fn give(self, outcome: O) {
        let _given_up = self.answer.send(outcome);
    }
}

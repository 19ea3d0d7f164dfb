//! The thread that reads. It takes all reads that wait, and does as many of them on one snapshot as its time allows.

use std::{sync::Arc, time::Instant};

use redb::{Database, ReadTransaction, ReadableDatabase};
use tokio::sync::oneshot;

use super::{
    Abandon, Store,
    writer::{AGAIN, TURN},
};
use crate::{
    StoreError, entries,
    file::{ENTRIES, META, USAGE},
    work::StoreUsage,
};

/// The most reads that the thread takes from the line at once.
const AT_ONCE: usize = 256;

/// The entries of the store at one moment.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
    pub(crate) entries: entries::Read,
}

/// A read that waits. It answers its caller, and returns an error only if the file failed.
pub(super) type Job = Box<dyn FnOnce(Result<&Snapshot, StoreError>) -> Result<(), redb::Error> + Send>;

/// A job that sends the outcome of `read` to its caller, and does nothing if the caller has given up.
pub(super) fn job<T: Send + 'static>(
    read: impl FnOnce(&Snapshot) -> Result<Result<T, StoreError>, redb::Error> + Send + 'static,
    answer: oneshot::Sender<Result<T, StoreError>>,
) -> Job {
    Box::new(move |snapshot| {
        if answer.is_closed() {
            return Ok(());
        }
        let (outcome, done) = match snapshot.map(read) {
            Ok(Ok(outcome)) => (outcome, Ok(())),
            Ok(Err(error)) => (Err(StoreError::Io(error.to_string())), Err(error)),
            Err(error) => (Err(error), Ok(())),
        };
        let _given_up = answer.send(outcome);
        done
    })
}

impl Snapshot {
    /// The number of keys and the bytes that the entries count. The size of the file is left out.
    pub(crate) fn usage(&self) -> Result<StoreUsage, redb::Error> {
        let row = self.transaction.open_table(META)?.get(USAGE)?.map(|row| row.value());
        let (keys, bytes) = row.unwrap_or_default();
        Ok(StoreUsage { keys, bytes, file: 0 })
    }
}

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
                // Other work may wait for a thread of the pool.
                return self.start(Self::read_all);
            }
        }
    }

    fn read_some(self: &Arc<Self>, jobs: Vec<Job>) {
        let mut waiting = jobs.into_iter();
        while waiting.len() > 0 {
            let read = self
                .with_database(|database| self.check_missing().map(|()| snapshot(database, &mut waiting)));
            let error = match read {
                Ok(Ok(Ok(()))) => continue,
                Ok(Ok(Err(error))) => {
                    self.tell(format!("{} cannot be read: {error}", self.path.display()));
                    self.close_now();
                    StoreError::Io(error.to_string())
                }
                Ok(Err(error)) => {
                    // The next write may not come for long. A flush makes the lost changes again.
                    self.flush_in(AGAIN);
                    error
                }
                Err(error) => error.into(),
            };
            waiting.by_ref().for_each(|job| drop(job(Err(error.clone()))));
        }
    }
}

/// Does some of the jobs on one snapshot, and ends it in time: a write may wait for its end.
fn snapshot(database: &Database, jobs: &mut impl Iterator<Item = Job>) -> Result<(), redb::Error> {
    let began = Instant::now();
    let transaction = database.begin_read()?;
    let entries = transaction.open_table(ENTRIES)?;
    let snapshot = Snapshot { transaction, entries };
    for job in jobs {
        job(Ok(&snapshot))?;
        if began.elapsed() >= TURN {
            break;
        }
    }
    Ok(())
}

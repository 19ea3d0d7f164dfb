//! The thread that writes: all that waits is one transaction.

use std::{
    mem,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use redb::{Database, Durability, ReadableTable};
use tokio::sync::oneshot;

use super::{Abandon, Changed, Job, Store, lock};
use crate::{
    StoreConfig, StoreError,
    entries::{self, Made},
    file::{self, ENTRIES, META, USAGE},
    work::{Owner, StoreUsage, Write, WriteOutcome, Written},
};

/// Writes of one transaction.
const AT_ONCE: usize = 1024;

/// Bytes of one transaction, or one write more.
const AT_ONCE_BYTES: usize = 8 << 20;

/// How long a thread works before others of the pool have their turn.
pub(super) const TURN: Duration = Duration::from_millis(10);

/// How soon what could not be made again is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// Bytes that may be answered and not on disk. More are written at once, whatever the time.
const MAX_PENDING: usize = 1 << 20;

/// Bytes of a pending change beside its key and value.
const MADE: usize = 128;

/// Writes of a failed transaction that are tried again, each by itself.
const TRIED_AGAIN: usize = 3;

/// Changes that are made again in one transaction.
const MADE_AGAIN: usize = 8;

type Answer = oneshot::Sender<WriteOutcome>;

impl Store {
    pub(super) fn write_all(self: Arc<Self>) {
        let _abandon = Abandon(&self, |store| drop(store.writes.abandon()));
        let began = Instant::now();
        loop {
            let jobs = self.writes.take(AT_ONCE, AT_ONCE_BYTES);
            if jobs.is_empty() {
                return;
            }
            self.write_some(jobs);
            if began.elapsed() >= TURN {
                // Others wait for the thread, too.
                return self.start(Self::write_all);
            }
        }
    }

    fn write_some(self: &Arc<Self>, jobs: Vec<Job<Write, WriteOutcome>>) {
        // What is alone in the file goes by itself, in its turn.
        let mut together = Vec::with_capacity(jobs.len());
        for job in jobs {
            match job.work {
                Write::Compact | Write::Close => {
                    self.transact_or_each(mem::take(&mut together));
                    self.do_alone(job);
                }
                _ => together.push(job),
            }
        }
        self.transact_or_each(together);
    }

    /// One transaction of all. If the file fails, each is tried by itself: a large one may have found the disk full,
    /// where the others have room.
    fn transact_or_each(self: &Arc<Self>, jobs: Vec<Job<Write, WriteOutcome>>) {
        if jobs.is_empty() {
            return;
        }
        // Kept to be tried again. Values are shared, not copied.
        let kept: Vec<_> = jobs.iter().map(|job| (job.owner.clone(), job.work.clone())).collect();
        let (works, answers): (Vec<_>, Vec<_>) =
            jobs.into_iter().map(|job| ((job.owner, job.work), job.answer)).unzip();
        let error = match self.transact(works) {
            Ok(outcomes) => return answer(answers.into_iter().zip(outcomes)),
            Err(error) => error,
        };
        // What may be in the file is not done twice.
        if kept.len() == 1 || lock(&self.pending).doubt.is_some() {
            return answer(answers.into_iter().map(|answer| (answer, Err(error.clone()))));
        }
        let (mut failures, mut last) = (0, error);
        for (answer_to, work) in answers.into_iter().zip(kept) {
            if failures < TRIED_AGAIN && lock(&self.pending).doubt.is_none() {
                match self.transact(vec![work]) {
                    Ok(outcomes) => {
                        answer([answer_to].into_iter().zip(outcomes));
                        continue;
                    }
                    Err(error) => (failures, last) = (failures + 1, error),
                }
            }
            answer([(answer_to, Err(last.clone()))]);
        }
    }

    /// Makes these writes one transaction. After an error nothing of it is there, and the file is closed: a failed one
    /// that is in the file after all is one that was made.
    fn transact(self: &Arc<Self>, works: Vec<(Owner, Write)>) -> Result<Vec<WriteOutcome>, StoreError> {
        if lock(&self.pending).is_missing {
            self.recover();
            self.check_missing()?;
        }
        let config = self.config();
        let flushes = works.iter().any(|(_, work)| matches!(work, Write::Flush));
        let mut made = Vec::new();
        let pending = lock(&self.pending).bytes;
        let sizes =
            works.iter().map(|(_, work)| work.bytes().saturating_add(work.keys().saturating_mul(MADE)));
        let is_large = sizes.fold(pending, usize::saturating_add) > MAX_PENDING;
        let is_durable = config.durable_within.is_none() || is_large || flushes;
        let must_commit = flushes && pending > 0;
        let mut attempt = Attempt::default();
        let done = self.with_database(|database| {
            // A reader may have closed the file since.
            self.check_missing()?;
            lock(&self.pending).doubt = None;
            let attempt = &mut attempt;
            let done = in_transaction(database, &config, works, is_durable, must_commit, &mut made, attempt);
            // Noted before the file can be closed: then it is not lost.
            if done.is_ok() && attempt.number.is_some() {
                self.note_pending(&made, is_durable, config.durable_within);
            }
            Ok::<_, StoreError>(done)
        })??;
        if let Err(error) = done {
            self.tell(format!("{} cannot be written: {error}", self.path.display()));
            lock(&self.pending).doubt = attempt.number;
            self.close_now();
            if self.settle() != Some(true) {
                self.recover();
                return Err(StoreError::Io(error.to_string()));
            }
        }
        let outcomes = attempt.outcomes;
        if config.events {
            for Made { owner, key, value } in made {
                (self.on_change)(Changed { store: self.name.clone(), owner, key, exists: value.is_some() });
            }
        }
        Ok(outcomes)
    }

    /// Whether the transaction whose commit failed is in the file: all of it was written, and then the disk failed.
    /// `None`: nobody knows yet, as the file cannot be opened.
    fn settle(&self) -> Option<bool> {
        let Some(number) = lock(&self.pending).doubt else { return Some(false) };
        let Ok(Ok(last)) = self.with_database(file::number) else { return None };
        if last == number {
            // It came after all that was pending, so that is there, too.
            self.note_durable();
        }
        lock(&self.pending).doubt = None;
        Some(last == number)
    }

    /// Notes what is answered and not on disk, and sees that it will be.
    fn note_pending(self: &Arc<Self>, made: &[Made], is_durable: bool, within: Option<Duration>) {
        if is_durable {
            return self.note_durable();
        }
        let mut pending = lock(&self.pending);
        pending.bytes = made.iter().map(Made::bytes).fold(pending.bytes, usize::saturating_add);
        pending.made.extend_from_slice(made);
        drop(pending);
        self.flush_in(within.unwrap_or_default());
    }

    /// Sees that what is pending is written after this time, unless that is to be sooner.
    pub(super) fn flush_in(self: &Arc<Self>, within: Duration) {
        let mut pending = lock(&self.pending);
        if pending.flush.is_none() || (pending.is_missing && !mem::replace(&mut pending.is_retried, true)) {
            if let Some(flush) = pending.flush.take() {
                flush.abort();
            }
            let store = Arc::downgrade(self);
            let flush = self.handle.spawn(async move {
                tokio::time::sleep(within).await;
                if let Some(store) = store.upgrade() {
                    // The task ends with the flush, which must not be aborted by it.
                    store.forget_flush();
                    let nobody = Owner::from("");
                    let _logged = store.push_write(&nobody, nobody.clone(), Write::Flush).await;
                }
            });
            pending.flush = Some(flush.abort_handle());
        }
    }

    fn forget_flush(&self) {
        let mut pending = lock(&self.pending);
        (pending.flush, pending.is_retried) = (None, false);
    }

    fn note_durable(&self) {
        if let Some(flush) = mem::take(&mut *lock(&self.pending)).flush {
            flush.abort();
        }
    }

    /// Opens the file anew after it failed, and makes again what had been answered and was not on disk.
    fn recover(self: &Arc<Self>) {
        if self.settle().is_none() {
            return self.flush_in(AGAIN);
        }
        let made = lock(&self.pending).made.clone();
        if made.is_empty() {
            return;
        }
        let mut left = &*made;
        let again = self.with_database(|database| {
            // In pieces: each gives back the pages that the next may need.
            while !left.is_empty() {
                let (some, rest) = left.split_at(left.len().min(MADE_AGAIN));
                make_again(database, some)?;
                left = rest;
            }
            Ok::<_, redb::Error>(())
        });
        let error = match again {
            Ok(Ok(())) => return self.note_durable(),
            Ok(Err(error)) => {
                self.close_now();
                error.to_string()
            }
            Err(error) => error.to_string(),
        };
        let (name, path, number) = (&self.name, self.path.display(), left.len());
        let mut pending = lock(&self.pending);
        pending.made = left.to_vec();
        pending.is_missing = true;
        if !mem::replace(&mut pending.is_told, true) {
            tracing::error!(
                "store `{name}`: {number} changes that were answered are not in {path}: {error}. Until they are, \
                 the store does nothing else"
            );
        }
        drop(pending);
        self.flush_in(AGAIN);
    }

    /// Fails while the file lacks what was answered.
    pub(super) fn check_missing(&self) -> Result<(), StoreError> {
        if !lock(&self.pending).is_missing {
            return Ok(());
        }
        Err(StoreError::Io("what was answered could not be written: see Main's log".to_owned()))
    }

    fn do_alone(self: &Arc<Self>, job: Job<Write, WriteOutcome>) {
        let pending = lock(&self.pending).bytes;
        let flushed = match pending {
            // Closing a file that was never opened does not open it.
            0 => Ok(Vec::new()),
            _ => self.transact(vec![(job.owner.clone(), Write::Flush)]),
        };
        let outcome = match (flushed, &job.work) {
            (Err(error), _) => Err(error),
            (Ok(_), Write::Compact) => self.compact_now(),
            (Ok(_), _) => Ok(Written::Done),
        };
        if matches!(job.work, Write::Close) {
            self.end_now();
        }
        job.give(outcome);
    }

    fn end_now(&self) {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = database.take()
            && let Err(error) = file::end(&database)
        {
            tracing::error!("store `{}`: {} cannot be closed: {error}", self.name, self.path.display());
        }
    }

    fn compact_now(&self) -> WriteOutcome {
        if let Err(error) = self.open_now() {
            return Err(error.into());
        }
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        match database.as_mut().map(Database::compact) {
            Some(Err(error)) => {
                *database = None;
                Err(StoreError::Io(error.to_string()))
            }
            _ => Ok(Written::Done),
        }
    }
}

fn answer(answers: impl IntoIterator<Item = (Answer, WriteOutcome)>) {
    for (answer, outcome) in answers {
        // The caller may have given up; its write holds.
        let _given_up = answer.send(outcome);
    }
}

/// A transaction until its commit.
#[derive(Default)]
struct Attempt {
    outcomes: Vec<WriteOutcome>,
    /// Its number, once it is being committed.
    number: Option<u64>,
}

fn in_transaction(
    database: &Database,
    config: &StoreConfig,
    works: Vec<(Owner, Write)>,
    is_durable: bool,
    must_commit: bool,
    made: &mut Vec<Made>,
    attempt: &mut Attempt,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(if is_durable { Durability::Immediate } else { Durability::None })?;
    let number = {
        let mut entries = transaction.open_table(ENTRIES)?;
        let mut meta = transaction.open_table(META)?;
        let before = meta.get(USAGE)?.map(|row| row.value()).unwrap_or_default();
        let mut usage = StoreUsage { keys: before.0, bytes: before.1, file: 0 };
        attempt.outcomes = works
            .into_iter()
            .map(|(owner, work)| entries::write(&mut entries, &mut usage, config, &owner, work, made))
            .collect::<Result<_, redb::StorageError>>()?;
        if before != (usage.keys, usage.bytes) {
            meta.insert(USAGE, (usage.keys, usage.bytes))?;
        }
        if made.is_empty() && !must_commit { None } else { Some(file::count_up(&mut meta)?) }
    };
    attempt.number = number;
    if number.is_some() {
        transaction.commit()?;
    } else {
        transaction.abort()?;
    }
    Ok(())
}

fn make_again(database: &Database, made: &[Made]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut entries = transaction.open_table(ENTRIES)?;
        let mut meta = transaction.open_table(META)?;
        let (keys, bytes) = meta.get(USAGE)?.map(|row| row.value()).unwrap_or_default();
        let mut usage = StoreUsage { keys, bytes, file: 0 };
        entries::again(&mut entries, &mut usage, made)?;
        meta.insert(USAGE, (usage.keys, usage.bytes))?;
    }
    transaction.commit()?;
    Ok(())
}

impl Made {
    /// Bytes that it takes in memory while it is pending.
    fn bytes(&self) -> usize {
        self.key.len().saturating_add(self.value.as_ref().map_or(0, Bytes::len)).saturating_add(MADE)
    }
}

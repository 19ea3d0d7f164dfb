//! The thread that writes: all that waits is one transaction.

use std::{
    mem,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use redb::Database;
use tokio::sync::oneshot;

use super::{
    Abandon, Changed, Job, Store,
    transaction::{Attempt, How, in_transaction, make_again},
};
use crate::{
    StoreConfig, StoreError,
    entries::{Made, PAGE},
    file,
    work::{Owner, Write, WriteOutcome, Written},
};

/// Writes of one transaction.
const AT_ONCE: usize = 1024;

/// Bytes of one transaction, or one write more.
const AT_ONCE_BYTES: usize = 8 << 20;

/// How long a thread works before others of the pool have their turn.
pub(super) const TURN: Duration = Duration::from_millis(10);

/// How soon what could not be made again is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// Bytes that may be answered and not on disk, or [`PART`] of the store's. More are written at once, whatever the time:
/// until then the file keeps what they replace.
const MAX_PENDING: usize = 1 << 20;

/// The part of a store's `bytes` that may be answered and not on disk, and that waiting writes share a transaction of.
const PART: u64 = 8;

/// Pages that a change of one key may replace.
const PAGES_OF_KEY: u64 = 3;

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
            let jobs = self.writes.take(AT_ONCE, self.config().part(AT_ONCE_BYTES));
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

    fn write_some(self: &Arc<Self>, jobs: Vec<Job>) {
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
    fn transact_or_each(self: &Arc<Self>, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        // Kept to be tried again. Values are shared, not copied.
        let kept: Vec<_> = jobs.iter().map(|job| (job.owner.clone(), job.work.clone())).collect();
        let (works, answers): (Vec<_>, Vec<_>) =
            jobs.into_iter().map(|job| ((job.owner, job.work), job.answer)).unzip();
        let error = match self.transact(works, true) {
            Ok(outcomes) => return answer(answers.into_iter().zip(outcomes)),
            Err(error) => error,
        };
        let is_full = matches!(error, StoreError::File { .. });
        // What may be in the file is not done twice.
        if (kept.len() == 1 && !is_full) || self.pending.lock().doubt.is_some() {
            return answer(answers.into_iter().map(|answer| (answer, Err(error.clone()))));
        }
        // A lone one that found the file full has had its turn.
        let tried = (kept.len() == 1).then(|| error.clone());
        let (mut failures, mut last) = (0, error);
        for (answer_to, work) in answers.into_iter().zip(kept) {
            if failures < TRIED_AGAIN && self.pending.lock().doubt.is_none() {
                match self.transact_in_room(work, tried.clone()) {
                    Ok(outcomes) => {
                        answer([answer_to].into_iter().zip(outcomes));
                        continue;
                    }
                    Err(error @ StoreError::File { .. }) => {
                        answer([(answer_to, Err(error))]);
                        continue;
                    }
                    Err(error) => (failures, last) = (failures + 1, error),
                }
            }
            answer([(answer_to, Err(last.clone()))]);
        }
    }

    /// Makes one write a transaction. If the file has no room for it, it is made small first. A key is deleted in any
    /// case, and any number of them where the file has more than it may. `tried`: how it failed by itself.
    fn transact_in_room(
        self: &Arc<Self>,
        work: (Owner, Write),
        tried: Option<StoreError>,
    ) -> Result<Vec<WriteOutcome>, StoreError> {
        let is_full =
            |outcome: &Result<Vec<WriteOutcome>, StoreError>| matches!(outcome, Err(StoreError::File { .. }));
        let mut outcome = tried.map_or_else(|| self.transact(vec![work.clone()], true), Err);
        if is_full(&outcome)
            && (self.may_pack() || work.1.is_delete())
            && self.pending.lock().bytes > 0
            && self.transact(vec![(Owner::from(""), Write::Flush)], false).is_ok()
        {
            // The file has kept what was replaced until now.
            outcome = self.transact(vec![work.clone()], true);
        }
        if is_full(&outcome) && self.may_pack() {
            if self.pack()? {
                outcome = self.transact(vec![work.clone()], true);
            }
            let counted = if is_full(&outcome) { self.counted.load(Ordering::Relaxed) } else { u64::MAX };
            self.packed_at.store(counted, Ordering::Relaxed);
        }
        let is_due = || work.1.keys() == 1 || self.bound.length() > self.config().file_bytes();
        if is_full(&outcome) && work.1.is_delete() && is_due() {
            outcome = self.transact(vec![work], false);
        }
        outcome
    }

    /// Whether making the file small may give room: not again before [`PART`] of the entries has gone.
    pub(crate) fn may_pack(&self) -> bool {
        let counted = self.counted.load(Ordering::Relaxed).saturating_add(self.config().bytes / PART);
        counted <= self.packed_at.load(Ordering::Relaxed)
    }

    /// Makes the file as small as its entries if it can then grow again: it doubles. Returns whether it did.
    fn pack(self: &Arc<Self>) -> Result<bool, StoreError> {
        let taken = self.with_database(file::taken)?.map_err(|error| StoreError::Io(error.to_string()))?;
        if taken > self.config().file_bytes() / 2 {
            return Ok(false);
        }
        self.compact_now().map(|_| true)
    }

    /// Makes these writes one transaction. After an error nothing of it is there. If the file failed, it is closed: a
    /// failed transaction that is in the file after all is one that was made.
    fn transact(
        self: &Arc<Self>,
        works: Vec<(Owner, Write)>,
        is_bounded: bool,
    ) -> Result<Vec<WriteOutcome>, StoreError> {
        if self.pending.lock().is_missing {
            self.recover();
            self.check_missing()?;
        }
        let config = self.config();
        let flushes = works.iter().any(|(_, work)| matches!(work, Write::Flush));
        let mut made = Vec::new();
        let pending = self.pending.lock().bytes;
        let sizes =
            works.iter().map(|(_, work)| work.bytes().saturating_add(work.keys().saturating_mul(MADE)));
        let changed = sizes.fold(pending, usize::saturating_add);
        let is_large = changed > config.part(MAX_PENDING);
        let keys = works.iter().map(|(_, work)| work.keys()).sum::<usize>();
        let keys = keys.saturating_add(self.pending.lock().made.len());
        let how = How {
            is_durable: config.durable_within.is_none() || is_large || flushes,
            must_commit: flushes && pending > 0,
            most: if is_bounded { config.file_bytes() } else { u64::MAX },
            replaced: (keys as u64).saturating_mul(PAGES_OF_KEY).saturating_add(changed as u64 / PAGE),
        };
        let is_durable = how.is_durable;
        let mut attempt = Attempt::default();
        let act = |database: &Database| {
            // A reader may have closed the file since.
            self.check_missing()?;
            self.pending.lock().doubt = None;
            let done = in_transaction(database, &self.bound, &config, &how, works, &mut made, &mut attempt);
            // Noted before the file can be closed: then it is not lost.
            if done.is_ok() && attempt.number.is_some() {
                self.note_pending(&made, is_durable, config.durable_within);
            }
            Ok::<_, StoreError>(done)
        };
        // A snapshot keeps the pages that were replaced since. A file that may not double has none to spare, and before
        // that a commit must have freed what is kept.
        let is_alone = !is_bounded || self.bound.length() > config.file_bytes() / 4;
        let done = if is_alone {
            self.with_database_alone(|database| act(database))??
        } else {
            self.with_database(act)??
        };
        self.counted.store(attempt.counted, Ordering::Relaxed);
        if attempt.is_over {
            return Err(StoreError::File { allowed: how.most });
        }
        if let Err(error) = done {
            self.tell(format!("{} cannot be written: {error}", self.path.display()));
            self.pending.lock().doubt = attempt.number;
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
        let Some(number) = self.pending.lock().doubt else { return Some(false) };
        let Ok(Ok(last)) = self.with_database(file::number) else { return None };
        if last == number {
            // It came after all that was pending, so that is there, too.
            self.note_durable();
        }
        self.pending.lock().doubt = None;
        Some(last == number)
    }

    /// Notes what is answered and not on disk, and sees that it will be.
    fn note_pending(self: &Arc<Self>, made: &[Made], is_durable: bool, within: Option<Duration>) {
        if is_durable {
            return self.note_durable();
        }
        let mut pending = self.pending.lock();
        pending.bytes = made.iter().map(Made::bytes).fold(pending.bytes, usize::saturating_add);
        pending.made.extend_from_slice(made);
        drop(pending);
        self.flush_in(within.unwrap_or_default());
    }

    /// Sees that what is pending is written after this time, unless that is to be sooner.
    pub(super) fn flush_in(self: &Arc<Self>, within: Duration) {
        let mut pending = self.pending.lock();
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
        let mut pending = self.pending.lock();
        (pending.flush, pending.is_retried) = (None, false);
    }

    fn note_durable(&self) {
        if let Some(flush) = mem::take(&mut *self.pending.lock()).flush {
            flush.abort();
        }
    }

    /// Opens the file anew after it failed, and makes again what had been answered and was not on disk.
    fn recover(self: &Arc<Self>) {
        if self.settle().is_none() {
            return self.flush_in(AGAIN);
        }
        let made = self.pending.lock().made.clone();
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
        let mut pending = self.pending.lock();
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
        if !self.pending.lock().is_missing {
            return Ok(());
        }
        Err(StoreError::Io("what was answered could not be written: see Main's log".to_owned()))
    }

    fn do_alone(self: &Arc<Self>, job: Job) {
        let pending = self.pending.lock().bytes;
        let flushed = match pending {
            // Closing a file that was never opened does not open it.
            0 => Ok(Vec::new()),
            _ => self.transact(vec![(job.owner.clone(), Write::Flush)], false),
        };
        let outcome = match (flushed, &job.work) {
            (Err(error), _) => Err(error),
            (Ok(_), Write::Compact) => self.compact_now(),
            (Ok(_), _) => Ok(Written::Done),
        };
        if matches!(job.work, Write::Close) {
            self.end_now();
        }
        answer([(job.answer, outcome)]);
    }

    fn end_now(&self) {
        let mut database = self.database.blocking_write();
        if let Some(database) = database.take()
            && let Err(error) = file::end(&database)
        {
            tracing::error!("store `{}`: {} cannot be closed: {error}", self.name, self.path.display());
        }
    }

    fn compact_now(&self) -> WriteOutcome {
        match self.with_database_alone(Database::compact)? {
            Ok(_) => Ok(Written::Done),
            Err(error) => {
                self.close_now();
                Err(StoreError::Io(error.to_string()))
            }
        }
    }
}

fn answer(answers: impl IntoIterator<Item = (Answer, WriteOutcome)>) {
    for (answer, outcome) in answers {
        // The caller may have given up; its write holds.
        let _given_up = answer.send(outcome);
    }
}

impl StoreConfig {
    /// So many bytes, or the [`PART`] of the store's.
    fn part(&self, most: usize) -> usize {
        usize::try_from(self.bytes / PART).map_or(most, |part| most.min(part))
    }
}

impl Made {
    /// Bytes that it takes in memory while it is pending.
    fn bytes(&self) -> usize {
        self.key.len().saturating_add(self.value.as_ref().map_or(0, Bytes::len)).saturating_add(MADE)
    }
}

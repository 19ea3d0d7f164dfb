//! The thread that writes. It makes all writes that wait one transaction.

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

/// The most writes of one transaction, besides flushes.
const AT_ONCE: usize = 1024;

/// Bytes at which a transaction takes no more writes. The last write may exceed them.
const AT_ONCE_BYTES: usize = 8 << 20;

/// How long a store's work keeps a thread of the pool before other work has its turn.
pub(super) const TURN: Duration = Duration::from_millis(10);

/// How soon a flush is tried after changes that were answered could not be written.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// The most bytes that may be answered and not on disk, if [`PART`] allows as many. More are written at once, because
/// until then the file keeps what they replace.
const MAX_PENDING: usize = 1 << 20;

/// An eighth of a store's `bytes` may be answered and not on disk, and writes that wait may share a transaction of as
/// many.
const PART: u64 = 8;

/// Pages that a change of one key may replace.
const PAGES_OF_KEY: u64 = 3;

/// Bytes that a pending change takes in memory beside its key and value.
const MADE: usize = 128;

/// The writes of a failed transaction are tried one by one, until this many of them have failed for another reason than
/// a full file.
const TRIED_AGAIN: usize = 3;

/// The most lost changes that are made again in one transaction.
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
                // Other work may wait for a thread of the pool.
                return self.start(Self::write_all);
            }
        }
    }

    fn write_some(self: &Arc<Self>, jobs: Vec<Job>) {
        // Compacting and closing need the file alone. They follow the writes that came before them.
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

    /// Makes all writes one transaction. If that fails, each is tried by itself: a large one may have found no room
    /// where the others have some.
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
        // A single write is tried again only if the file was full. No write is, if it may be in the file in spite of
        // the error.
        if (kept.len() == 1 && !is_full) || self.pending.lock().doubt.is_some() {
            return answer(answers.into_iter().map(|answer| (answer, Err(error.clone()))));
        }
        // A single write was tried by itself already.
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

    /// Makes one write a transaction. If the file has no room, pending changes are flushed, then the file is compacted,
    /// and the write is tried after each. In the end, a delete may exceed the bound if it is of one key, or if the file
    /// is over the bound already. `tried` is the error of the write if it was tried by itself already.
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
            // Until that flush, the file has kept the pages that pending changes replaced.
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

    /// Whether compacting the file may give room. If it gave none, it is tried again once a [`PART`] of the store's
    /// bytes is gone.
    pub(crate) fn may_pack(&self) -> bool {
        let counted = self.counted.load(Ordering::Relaxed).saturating_add(self.config().bytes / PART);
        counted <= self.packed_at.load(Ordering::Relaxed)
    }

    /// Compacts the file if the pages in use take at most half of the bound, since a file grows by doubling. Returns
    /// whether it was compacted.
    fn pack(self: &Arc<Self>) -> Result<bool, StoreError> {
        let taken = self.with_database(file::taken)?.map_err(|error| StoreError::Io(error.to_string()))?;
        if taken > self.config().file_bytes() / 2 {
            return Ok(false);
        }
        self.compact_now().map(|_| true)
    }

    /// Makes these writes one transaction, within the bound of the file if `is_bounded`. After a failure the file is
    /// opened again: if it has the transaction, the writes succeed. Otherwise they fail, and nothing of them holds,
    /// unless the file cannot be opened, so that this is not known.
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
            // A reader may have closed the file since the last check.
            self.check_missing()?;
            self.pending.lock().doubt = None;
            let done = in_transaction(database, &self.bound, &config, &how, works, &mut made, &mut attempt);
            // Noted before a reader can close the file, which would lose the changes.
            if done.is_ok() && attempt.number.is_some() {
                self.note_pending(&made, is_durable, config.durable_within);
            }
            Ok::<_, StoreError>(done)
        };
        // The snapshots of readers keep pages that are replaced. A file that cannot double twice within its bound has
        // none to spare, so nobody may read meanwhile.
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
            if self.resolve_doubt() != Some(true) {
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

    /// Whether the file has the transaction whose commit failed, because the disk failed only after all was written.
    /// `None` if that is not known, because the file cannot be opened. `false` if no transaction is in doubt.
    fn resolve_doubt(&self) -> Option<bool> {
        let Some(number) = self.pending.lock().doubt else { return Some(false) };
        let Ok(Ok(last)) = self.with_database(file::number) else { return None };
        if last == number {
            // The transaction came after all pending changes, so the file has those, too.
            self.note_durable();
        }
        self.pending.lock().doubt = None;
        Some(last == number)
    }

    /// Notes changes that are answered and not on disk, and schedules a flush. If they are on disk (`is_durable`), all
    /// earlier ones are, and nothing is pending any more.
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

    /// Schedules a flush after this time, unless one is scheduled. If changes were lost, the first flush that is to
    /// make them again replaces the one that is scheduled.
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
                    // A flush that succeeds aborts the scheduled task, which must not be this one.
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

    /// Notes that all that was answered is on disk. A scheduled flush is no longer needed.
    fn note_durable(&self) {
        if let Some(flush) = mem::take(&mut *self.pending.lock()).flush {
            flush.abort();
        }
    }

    /// Opens the file again after it failed, and makes the pending changes again. If that fails, schedules a flush,
    /// which tries it again.
    fn recover(self: &Arc<Self>) {
        if self.resolve_doubt().is_none() {
            return self.flush_in(AGAIN);
        }
        let made = self.pending.lock().made.clone();
        if made.is_empty() {
            return;
        }
        let mut left = &*made;
        let again = self.with_database(|database| {
            // In several transactions: each frees pages that the next may need.
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

    /// Fails while the file lacks changes that were answered.
    pub(super) fn check_missing(&self) -> Result<(), StoreError> {
        if !self.pending.lock().is_missing {
            return Ok(());
        }
        Err(StoreError::Io("what was answered could not be written: see Main's log".to_owned()))
    }

    /// Flushes pending changes, and then compacts or closes the file. It is closed even if the flush fails.
    fn do_alone(self: &Arc<Self>, job: Job) {
        let pending = self.pending.lock().bytes;
        let flushed = match pending {
            // Without pending changes there is no flush, so a file that was never opened is not opened to be closed.
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

    /// Marks the file as closed and closes it, if it is open.
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
        // The caller may have given up. Its write holds all the same.
        let _given_up = answer.send(outcome);
    }
}

impl StoreConfig {
    /// `most` bytes, or the [`PART`]th part of the store's `bytes` if that is less.
    fn part(&self, most: usize) -> usize {
        usize::try_from(self.bytes / PART).map_or(most, |part| most.min(part))
    }
}

impl Made {
    /// Bytes that the change takes in memory while it is pending.
    fn bytes(&self) -> usize {
        self.key.len().saturating_add(self.value.as_ref().map_or(0, Bytes::len)).saturating_add(MADE)
    }
}

//! One store: its file, the work that waits for it, and the threads that do that work.

mod reader;
mod transaction;
mod writer;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use redb::Database;
use tokio::{
    runtime::Handle,
    sync::{RwLock, Semaphore, oneshot},
    task::{AbortHandle, JoinError},
};
use weir_names::StoreName;

pub(crate) use self::reader::Snapshot;
use crate::{
    OpenError, StoreConfig, StoreError,
    bound::Bound,
    entries::{self, Made},
    file::{self, Opened},
    line::{Line, Pushed},
    work::{Owner, Rows, StoreUsage, Write, WriteOutcome},
};

/// How often a file that fails may be opened in quick succession. After that, it is opened once a second.
const OPENINGS: u32 = 32;

/// How long an error is not logged again.
const TOLD: Duration = Duration::from_secs(60);

/// Opens a store's file with a cache of this many bytes, within the bound. May block.
pub(crate) type Open = Box<dyn Fn(u64, &Arc<Bound>) -> Result<(Database, Opened), OpenError> + Send + Sync>;

/// A change of a store that is visible now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The store.
    pub store: StoreName,
    /// The owner of the key: see [`Row::owner`](crate::Row::owner).
    pub owner: Arc<str>,
    /// The key.
    pub key: String,
    /// Whether the key has a value now.
    pub exists: bool,
}

/// Called for each change of a store with `events`, in the order of the changes. It runs on a thread of the blocking
/// pool, and must not wait.
pub type OnChange = Arc<dyn Fn(Changed) + Send + Sync>;

/// One store, shared by all its users.
pub struct Store {
    name: StoreName,
    path: PathBuf,
    handle: Handle,
    open: Open,
    /// Held by the thread of [`open`](Self::open), so that a file whose opening hangs takes no second thread.
    opening: Arc<Semaphore>,
    on_change: OnChange,
    config: Mutex<StoreConfig>,
    /// The open file. `None` before its first opening, and after a failure or a close until the next use. The lock is
    /// fair: neither reads nor writes starve.
    database: RwLock<Option<Database>>,
    bound: Arc<Bound>,
    /// Bytes that the entries counted before the last transaction.
    counted: AtomicU64,
    /// The value of `counted` when compacting the file was last impossible or gave no room. Otherwise [`u64::MAX`].
    packed_at: AtomicU64,
    failures: Mutex<Failures>,
    is_closed: AtomicBool,
    writes: Line<Job>,
    reads: Line<reader::Job>,
    pending: Mutex<Pending>,
}

/// Failures of the file: for the log, and to limit how often it is opened.
#[derive(Debug, Default)]
struct Failures {
    /// The error of the last opening, if it failed.
    last: Option<OpenError>,
    /// The error that was logged last, and when.
    told: Option<(String, Instant)>,
    /// Recent openings, one fewer for each second that passes. They are limited because each reads the whole file.
    openings: u32,
    /// When `openings` last became fewer, or the first opening. `None` before that.
    since: Option<Instant>,
}

/// Changes that were answered and are not on disk yet. They are made again if the file fails before that.
#[derive(Debug, Default)]
struct Pending {
    made: Vec<Made>,
    bytes: usize,
    /// Whether the file lost the changes when it failed. Nothing is read or written until they are made again.
    is_missing: bool,
    /// Whether the task `flush` tries to make the lost changes again.
    is_retried: bool,
    /// Whether the log says that changes are lost for now.
    is_told: bool,
    /// The number of a transaction whose commit failed, until it is known whether the file has it.
    doubt: Option<u64>,
    /// The task that will write the changes to disk in time.
    flush: Option<AbortHandle>,
}

/// A write that waits.
#[derive(Debug)]
struct Job {
    owner: Owner,
    work: Write,
    answer: oneshot::Sender<WriteOutcome>,
}

impl Store {
    pub(crate) fn new(
        name: StoreName,
        path: PathBuf,
        config: StoreConfig,
        handle: Handle,
        on_change: OnChange,
    ) -> Arc<Self> {
        let of_file = path.clone();
        let open: Open = Box::new(move |cache, bound| file::open(&of_file, cache, bound));
        Self::with(name, path, config, handle, on_change, open)
    }

    pub(crate) fn with(
        name: StoreName,
        path: PathBuf,
        config: StoreConfig,
        handle: Handle,
        on_change: OnChange,
        open: Open,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            path,
            handle,
            open,
            opening: Arc::new(Semaphore::new(1)),
            on_change,
            config: Mutex::new(config),
            database: RwLock::default(),
            bound: Arc::default(),
            counted: AtomicU64::new(0),
            packed_at: AtomicU64::new(u64::MAX),
            failures: Mutex::default(),
            is_closed: AtomicBool::new(false),
            writes: Line::default(),
            reads: Line::default(),
            pending: Mutex::default(),
        })
    }

    /// The name of the store.
    #[must_use]
    pub fn name(&self) -> &StoreName {
        &self.name
    }

    /// The path of the store's file.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> StoreConfig {
        self.config.lock().clone()
    }

    /// Opens the file, unless it is open or the store is closed. Logs a warning if the first opening repairs the file.
    ///
    /// # Errors
    ///
    /// The file is in use by another process, of another version, damaged, could not be made, read or written, or has
    /// failed so often that it is not tried for a second.
    pub async fn open(self: &Arc<Self>) -> Result<(), OpenError> {
        let is_open = self.database.try_read().is_ok_and(|database| database.is_some());
        if is_open || self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let turn = self.opening.clone().acquire_owned().await;
        let store = self.clone();
        let opening = self.handle.spawn_blocking(move || {
            // Held for as long as the thread runs, even if the caller has given up.
            let _turn = turn;
            store.with_database(|_| ())
        });
        opening.await.unwrap_or_else(|error| Err(self.gone(&error)))
    }

    /// What the store holds: its keys and bytes, and the size of its file.
    ///
    /// # Errors
    ///
    /// The file failed, too many calls wait, or the store is closed.
    pub async fn usage(self: &Arc<Self>) -> Result<StoreUsage, StoreError> {
        let path = self.path.clone();
        let read = move |snapshot: &Snapshot| {
            let file = path.metadata().map_or(0, |found| found.len());
            Ok(Ok(StoreUsage { file, ..snapshot.usage()? }))
        };
        self.read(&Owner::from(""), read).await
    }

    /// Up to `limit` entries whose keys have the prefix and that come after the entry `after`. They are of one owner,
    /// or of all if `owner` is `None`, and have their values if `values` is set. A page that is full earlier has fewer
    /// entries, or none, and says where the next one begins. A `limit` of 0 counts as 1.
    ///
    /// # Errors
    ///
    /// The file failed, too many calls wait, or the store is closed.
    pub async fn rows(
        self: &Arc<Self>,
        owner: Option<String>,
        after: Option<(String, String)>,
        prefix: String,
        limit: usize,
        values: bool,
    ) -> Result<Rows, StoreError> {
        let read = move |snapshot: &Snapshot| {
            Ok(Ok(entries::rows(&snapshot.entries, owner.as_deref(), after, &prefix, limit, values)?))
        };
        self.read(&Owner::from(""), read).await
    }

    /// Sets the values of keys of any owners: all of them, or none if it fails.
    ///
    /// # Errors
    ///
    /// Too many keys, a key or value out of bounds, no room, a file that failed, too many waiting calls, or a closed
    /// store.
    pub async fn import(
        self: &Arc<Self>,
        rows: Vec<(String, String, bytes::Bytes)>,
    ) -> Result<(), StoreError> {
        entries::check_number(rows.len())?;
        rows.iter().try_for_each(|(_, key, _)| entries::check_key(key))?;
        let rows = rows.into_iter().map(|(owner, key, value)| (owner.into(), key, Some(value))).collect();
        self.write(Owner::from(""), Write::Change(rows)).await.map(drop)
    }

    /// Makes the file as small as its entries, and returns what the store then holds. Other calls wait meanwhile.
    ///
    /// # Errors
    ///
    /// The file failed, too many calls wait, or the store is closed.
    pub async fn compact(self: &Arc<Self>) -> Result<StoreUsage, StoreError> {
        self.write(Owner::from(""), Write::Compact).await?;
        self.usage().await
    }

    /// Waits until all that was answered is on disk.
    ///
    /// # Errors
    ///
    /// The file failed, or the store is closed.
    pub async fn flush(self: &Arc<Self>) -> Result<(), StoreError> {
        self.write(Owner::from(""), Write::Flush).await.map(drop)
    }

    /// Takes a new configuration, and allows calls again. A change of `cache` applies when the file is next opened.
    pub(crate) fn configure(&self, config: StoreConfig) {
        *self.config.lock() = config;
        self.packed_at.store(u64::MAX, Ordering::Relaxed);
        self.is_closed.store(false, Ordering::Release);
    }

    /// Refuses all calls until the store is configured again.
    pub(crate) fn refuse(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Does the writes that wait, writes everything to disk and closes the file. Later calls fail until the store is
    /// configured again.
    pub(crate) async fn close(self: &Arc<Self>) {
        self.refuse();
        // An error was logged. There is no caller who could do anything about it.
        let nobody = Owner::from("");
        let _closed = self.push_write(&nobody, nobody.clone(), Write::Close).await;
    }

    pub(crate) async fn write(self: &Arc<Self>, owner: Owner, write: Write) -> WriteOutcome {
        let user = owner.clone();
        self.write_as(&user, owner, write).await
    }

    /// Writes entries of `owner` when it is the turn of `user`. In a shared store, all users have the same owner.
    pub(crate) async fn write_as(self: &Arc<Self>, user: &Owner, owner: Owner, write: Write) -> WriteOutcome {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        // A value that can never be stored takes no room in the line from others.
        let (bytes, allowed) = (write.largest(), self.config.lock().value_size);
        if bytes > allowed {
            return Err(StoreError::ValueTooLarge { bytes, allowed });
        }
        self.push_write(user, owner, write).await
    }

    /// Adds a write to the line, even if the store is closed, and waits for its outcome.
    async fn push_write(self: &Arc<Self>, user: &Owner, owner: Owner, work: Write) -> WriteOutcome {
        let (answer, answered) = oneshot::channel();
        let (bytes, is_due, is_last) = (work.bytes(), work.is_due(), matches!(work, Write::Close));
        let job = Job { owner, work, answer };
        let pushed =
            if is_due { self.writes.push_due(is_last, job) } else { self.writes.push(user, bytes, job) };
        match pushed {
            Pushed::Waits => {}
            Pushed::First => self.start(Self::write_all),
            Pushed::Full => return Err(StoreError::Busy),
        }
        answered.await.unwrap_or_else(|_| Err(self.dropped()))
    }

    /// Reads a snapshot on the thread for reads, in the turn of a user.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        user: &Owner,
        read: impl FnOnce(&Snapshot) -> Result<Result<T, StoreError>, redb::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let (answer, answered) = oneshot::channel();
        match self.reads.push(user, 0, reader::job(read, answer)) {
            Pushed::Waits => {}
            Pushed::First => self.start(Self::read_all),
            Pushed::Full => return Err(StoreError::Busy),
        }
        answered.await.unwrap_or_else(|_| Err(self.dropped()))
    }

    /// Runs `write_all` or `read_all` on the blocking pool. Each ends when nothing waits, or lets other work have its
    /// turn and is started again.
    fn start(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) + Send + 'static) {
        let store = self.clone();
        // Nobody joins the thread, but for each piece of its work a caller waits for the answer.
        drop(self.handle.spawn_blocking(move || work(store)));
    }

    /// Calls `act` with the file, which is opened first if it is not open.
    pub(crate) fn with_database<T>(&self, act: impl FnOnce(&Database) -> T) -> Result<T, OpenError> {
        loop {
            let database = self.database.blocking_read();
            if let Some(database) = &*database {
                return Ok(act(database));
            }
            drop(database);
            self.open_now()?;
        }
    }

    /// Calls `act` with the file while nothing is read. The snapshot of a read would keep the pages that are replaced.
    fn with_database_alone<T>(&self, act: impl FnOnce(&mut Database) -> T) -> Result<T, OpenError> {
        loop {
            let mut database = self.database.blocking_write();
            if let Some(database) = &mut *database {
                return Ok(act(database));
            }
            drop(database);
            self.open_now()?;
        }
    }

    fn open_now(&self) -> Result<(), OpenError> {
        let mut database = self.database.blocking_write();
        if database.is_some() {
            return Ok(());
        }
        let is_first = self.may_open()?;
        let opened = {
            let cache = self.config.lock().cache;
            (self.open)(cache, &self.bound)
        };
        let failed = opened.as_ref().err().cloned();
        if let Some(error) = &failed {
            self.tell(error.to_string());
        }
        self.failures.lock().last = failed;
        let (opened, how) = opened?;
        // Repairs after the first opening follow failures, which were logged.
        if how == Opened::Repaired && is_first {
            tracing::warn!(
                "store `{}`: {} was not closed: it was checked, and is as its last whole write left it",
                self.name,
                self.path.display()
            );
        }
        *database = Some(opened);
        Ok(())
    }

    /// Counts an opening, and returns whether it is the first. Fails if the file was opened too often of late.
    fn may_open(&self) -> Result<bool, OpenError> {
        let mut failures = self.failures.lock();
        let is_first = failures.since.is_none();
        let now = Instant::now();
        let since = *failures.since.get_or_insert(now);
        let passed = u32::try_from(now.saturating_duration_since(since).as_secs()).unwrap_or(u32::MAX);
        if passed > 0 {
            failures.since = Some(now);
            failures.openings = failures.openings.saturating_sub(passed);
        }
        if failures.openings < OPENINGS {
            failures.openings = failures.openings.saturating_add(1);
            return Ok(is_first);
        }
        let reason = "it has failed many times: it is tried again within a second".to_owned();
        Err(failures.last.clone().unwrap_or_else(|| OpenError::Io { path: self.path.clone(), reason }))
    }

    /// Logs an error, unless it is the one that was logged last, less than [`TOLD`] ago.
    fn tell(&self, error: String) {
        let mut failures = self.failures.lock();
        let is_known = |(told, at): &(String, Instant)| *told == error && at.elapsed() < TOLD;
        if !failures.told.as_ref().is_some_and(is_known) {
            tracing::error!("store `{}`: {error}", self.name);
            failures.told = Some((error, Instant::now()));
        }
    }

    /// Closes the file after a failure. The next work opens it again.
    fn close_now(&self) {
        let mut database = self.database.blocking_write();
        // A file that failed may have lost pending changes. The next write makes them again before it does anything
        // else.
        let mut pending = self.pending.lock();
        pending.is_missing |= !pending.made.is_empty();
        drop(pending);
        drop(database.take());
    }

    /// The error of a call whose work was dropped, because its thread panicked.
    fn dropped(&self) -> StoreError {
        StoreError::Io(format!("{} could not be read or written: see Main's log", self.path.display()))
    }

    /// The error of an opening whose thread panicked or was never started.
    fn gone(&self, error: &JoinError) -> OpenError {
        OpenError::Io { path: self.path.clone(), reason: error.to_string() }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.name).field("path", &self.path).finish_non_exhaustive()
    }
}

/// Closes the file and empties a line if the line's thread panics, so that the store stays usable. A damaged page can
/// make redb panic.
struct Abandon<'s, F: FnMut(&'s Store)>(&'s Store, F);

impl<'s, F: FnMut(&'s Store)> Drop for Abandon<'s, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(
                "store `{}`: {} is damaged: it is opened anew",
                self.0.name,
                self.0.path.display()
            );
            self.0.close_now();
            (self.1)(self.0);
        }
    }
}

//! One store: its file, what waits for it, and the threads that do it.

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

/// Openings at once. Then a file that fails is opened once a second.
const OPENINGS: u32 = 32;

/// The same error is logged once in this time.
const TOLD: Duration = Duration::from_secs(60);

/// Opens a store's file with a cache of so many bytes and within a bound. May block.
pub(crate) type Open = Box<dyn Fn(u64, &Arc<Bound>) -> Result<(Database, Opened), OpenError> + Send + Sync>;

/// A change of a store that is visible now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The store.
    pub store: StoreName,
    /// Whose key it is: see [`Row::owner`](crate::Row::owner).
    pub owner: Arc<str>,
    /// The key.
    pub key: String,
    /// Whether it has a value now.
    pub exists: bool,
}

/// Hears of changes of stores with `events`, in their order, on a thread of the blocking pool. It must not wait.
pub type OnChange = Arc<dyn Fn(Changed) + Send + Sync>;

/// One store. All that use it share it.
pub struct Store {
    name: StoreName,
    path: PathBuf,
    handle: Handle,
    open: Open,
    /// One [`open`](Self::open) at a time: its thread holds it, so a file that hangs takes no second one.
    opening: Arc<Semaphore>,
    on_change: OnChange,
    config: Mutex<StoreConfig>,
    /// `None`: not opened yet, or closed after a failure. A fair lock: neither reads nor writes starve the others.
    database: RwLock<Option<Database>>,
    bound: Arc<Bound>,
    /// What the entries counted before the last transaction.
    counted: AtomicU64,
    /// What they counted when the file could not be made small, or that gave no room. [`u64::MAX`]: it did.
    packed_at: AtomicU64,
    failures: Mutex<Failures>,
    is_closed: AtomicBool,
    writes: Line<Job>,
    reads: Line<reader::Job>,
    /// What was answered and is not on disk.
    pending: Mutex<Pending>,
}

/// What the log says of a file that fails, and how often it is opened.
#[derive(Debug, Default)]
struct Failures {
    /// Why it could not be opened last.
    last: Option<OpenError>,
    told: Option<(String, Instant)>,
    /// Openings since `since`: each reads the whole file.
    openings: u32,
    since: Option<Instant>,
}

/// What was answered and is not on disk: made again if the file fails before.
#[derive(Debug, Default)]
struct Pending {
    made: Vec<Made>,
    bytes: usize,
    /// Whether the file lost it when it failed: nothing is read or written before it is there again.
    is_missing: bool,
    /// Whether `flush` is a try to make it again.
    is_retried: bool,
    /// Whether the log says so.
    is_told: bool,
    /// The number of the last transaction whose commit failed, while nobody knows whether it is in the file.
    doubt: Option<u64>,
    /// The task that writes it in time.
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

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &StoreName {
        &self.name
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Its configuration now.
    #[must_use]
    pub fn config(&self) -> StoreConfig {
        self.config.lock().clone()
    }

    /// Opens the file, unless it is open, or the store is closed. Says so in the log if it was repaired.
    ///
    /// # Errors
    ///
    /// The file is another's, of another version, damaged, or could not be made.
    pub async fn open(self: &Arc<Self>) -> Result<(), OpenError> {
        let is_open = self.database.try_read().is_ok_and(|database| database.is_some());
        if is_open || self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let turn = self.opening.clone().acquire_owned().await;
        let store = self.clone();
        let opening = self.handle.spawn_blocking(move || {
            // Held as long as the thread is taken, even if nobody waits any more.
            let _turn = turn;
            store.with_database(|_| ())
        });
        opening.await.unwrap_or_else(|error| Err(self.gone(&error)))
    }

    /// What it holds.
    ///
    /// # Errors
    ///
    /// The file failed, or the store is closed.
    pub async fn usage(self: &Arc<Self>) -> Result<StoreUsage, StoreError> {
        let path = self.path.clone();
        let read = move |snapshot: &Snapshot| {
            let file = path.metadata().map_or(0, |found| found.len());
            Ok(Ok(StoreUsage { file, ..snapshot.usage()? }))
        };
        self.read(&Owner::from(""), read).await
    }

    /// Up to `limit` entries of one owner, or of all, after one. They come with their values if asked for.
    ///
    /// # Errors
    ///
    /// The file failed, or the store is closed.
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

    /// Sets entries of any owners, all or none.
    ///
    /// # Errors
    ///
    /// A key or value out of bounds, no room, a file that failed, or a closed store.
    pub async fn import(
        self: &Arc<Self>,
        rows: Vec<(String, String, bytes::Bytes)>,
    ) -> Result<(), StoreError> {
        entries::check_number(rows.len())?;
        rows.iter().try_for_each(|(_, key, _)| entries::check_key(key))?;
        let rows = rows.into_iter().map(|(owner, key, value)| (owner.into(), key, Some(value))).collect();
        self.write(Owner::from(""), Write::Change(rows)).await.map(drop)
    }

    /// Makes the file as small as its entries. Other calls wait meanwhile.
    ///
    /// # Errors
    ///
    /// The file failed, or the store is closed.
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

    /// Takes a new configuration. Another `cache` holds once the file is opened anew.
    pub(crate) fn configure(&self, config: StoreConfig) {
        *self.config.lock() = config;
        self.packed_at.store(u64::MAX, Ordering::Relaxed);
        self.is_closed.store(false, Ordering::Release);
    }

    /// Refuses all further calls.
    pub(crate) fn refuse(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Does what waits, writes all to disk and closes the file. Later calls fail.
    pub(crate) async fn close(self: &Arc<Self>) {
        self.refuse();
        // An error was logged, and nobody else hears it.
        let nobody = Owner::from("");
        let _closed = self.push_write(&nobody, nobody.clone(), Write::Close).await;
    }

    pub(crate) async fn write(self: &Arc<Self>, owner: Owner, write: Write) -> WriteOutcome {
        let user = owner.clone();
        self.write_as(&user, owner, write).await
    }

    /// Writes entries of an owner for a user: in a shared store all users have one owner.
    pub(crate) async fn write_as(self: &Arc<Self>, user: &Owner, owner: Owner, write: Write) -> WriteOutcome {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        // What can never be stored takes no room of others.
        let (bytes, allowed) = (write.largest(), self.config.lock().value_size);
        if bytes > allowed {
            return Err(StoreError::ValueTooLarge { bytes, allowed });
        }
        self.push_write(user, owner, write).await
    }

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

    /// Runs one of the two loops on the pool. It ends when nothing waits.
    fn start(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) + Send + 'static) {
        let store = self.clone();
        // The lines own it: every piece of work in them has one that waits for its answer.
        drop(self.handle.spawn_blocking(move || work(store)));
    }

    /// Uses the file, opened if need be.
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

    /// Uses the file while nothing is read: a snapshot would keep the pages that were replaced since.
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
        // Later ones are after failures, which were told.
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

    /// Whether the file is opened for the first time. Fails if it was opened too often of late.
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

    /// Logs an error: the same one once in [`TOLD`].
    fn tell(&self, error: String) {
        let mut failures = self.failures.lock();
        let is_known = |(told, at): &(String, Instant)| *told == error && at.elapsed() < TOLD;
        if !failures.told.as_ref().is_some_and(is_known) {
            tracing::error!("store `{}`: {error}", self.name);
            failures.told = Some((error, Instant::now()));
        }
    }

    /// Closes the file. The next work opens it.
    fn close_now(&self) {
        let mut database = self.database.blocking_write();
        // A file that failed may have lost it: the next write makes it again before anything else is done.
        let mut pending = self.pending.lock();
        pending.is_missing |= !pending.made.is_empty();
        drop(pending);
        drop(database.take());
    }

    fn dropped(&self) -> StoreError {
        StoreError::Io(format!("{} could not be read or written: see Main's log", self.path.display()))
    }

    fn gone(&self, error: &JoinError) -> OpenError {
        OpenError::Io { path: self.path.clone(), reason: error.to_string() }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.name).field("path", &self.path).finish_non_exhaustive()
    }
}

/// Leaves the line usable if its thread panics: a damaged page can make redb panic.
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

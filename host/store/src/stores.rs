//! The stores of one Main, and a store as one user sees it.

use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::StorageError;
use tokio::{runtime::Handle, task::JoinSet};
use weir_config::{DirMode, StoreGrant};
use weir_names::StoreName;

use crate::{
    OnChange, Store, StoreError, StoresConfig,
    entries::{self, check_changes, check_key, check_number},
    work::{Change, Owner, Page, Write, Written},
};

/// How long all files together may take to be written and closed when Main ends.
const CLOSING: Duration = Duration::from_secs(10);

/// The stores of one Main, by name.
pub struct Stores {
    pub(crate) handle: Handle,
    on_change: OnChange,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    config: StoresConfig,
    /// All stores so far, with those that the configuration no longer has. A store that comes back is the same one.
    by_name: BTreeMap<StoreName, Arc<Store>>,
}

/// Why a guest cannot use a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The store is not granted. It may exist or not.
    #[error("the store is not granted")]
    NotGranted,
    /// The store is granted, but it is not configured.
    #[error("there is no such store")]
    Unknown,
}

impl Stores {
    /// Starts without stores. Their work will run on the blocking pool of `handle`, whose runtime must have timers.
    #[must_use]
    pub fn new(handle: Handle, on_change: OnChange) -> Self {
        Self { handle, on_change, known: Mutex::default() }
    }

    /// Takes a new configuration, with the stores' files in `dir`; without `dir` does nothing. Opens no file. Closes
    /// the stores that the configuration no longer has.
    pub fn configure(&self, dir: Option<&PathBuf>, config: &StoresConfig) {
        let mut known = self.known.lock();
        let Some(dir) = dir else { return };
        for (name, config) in &config.0 {
            match known.by_name.get(name) {
                Some(store) => store.configure(config.clone()),
                None => {
                    let path = dir.join(format!("{name}.redb"));
                    let (handle, on_change) = (self.handle.clone(), self.on_change.clone());
                    let store = Store::new(name.clone(), path, config.clone(), handle, on_change);
                    known.by_name.insert(name.clone(), store);
                }
            }
        }
        for name in known.config.0.keys().filter(|name| !config.0.contains_key(*name)) {
            if let Some(store) = known.by_name.get(name).cloned() {
                // Nobody joins this task. `Stores::close` closes the store again, and so waits for it.
                drop(self.handle.spawn(async move { store.close().await }));
            }
        }
        known.config = config.clone();
    }

    /// The stores of the current configuration, in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Store>> {
        let known = self.known.lock();
        known.config.0.keys().filter_map(|name| known.by_name.get(name)).cloned().collect()
    }

    /// The store of this name, if it is in the current configuration.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Store>> {
        let known = self.known.lock();
        known.config.0.get(name)?;
        known.by_name.get(name).cloned()
    }

    /// A store as `owner` sees it: an extension's id, or `hooks/` and the name of a directory of hooks.
    ///
    /// # Errors
    ///
    /// The store is not granted, or not configured.
    pub fn bucket(&self, owner: &str, grants: &[StoreGrant], name: &str) -> Result<Bucket, Unavailable> {
        let grant = grants.iter().find(|grant| grant.name.as_str() == name).ok_or(Unavailable::NotGranted)?;
        self.bucket_of(owner, name, grant.mode == DirMode::Rw).ok_or(Unavailable::Unknown)
    }

    /// A store as `owner` sees it, without a grant. `None` if the store is not configured.
    #[must_use]
    pub fn bucket_of(&self, owner: &str, name: &str, is_writable: bool) -> Option<Bucket> {
        let store = self.get(name)?;
        let user = owner;
        let owner = if store.config().shared { "" } else { owner };
        Some(Bucket::new(store, owner.into(), is_writable).used_by(user.into()))
    }

    /// Opens all files now, so that what is wrong with them is in the log.
    pub async fn open_all(&self) {
        for store in self.all() {
            // An error was logged. The next use of the store opens the file again.
            let _logged = store.open().await;
        }
    }

    /// Writes and closes all files. Waits at most 10 seconds for that, and logs an error if it takes longer.
    pub async fn close(&self) {
        let stores: Vec<_> = self.known.lock().by_name.values().cloned().collect();
        stores.iter().for_each(|store| store.refuse());
        // All at once: a large store that is compacted or checked does not keep the others from being written.
        let mut closings = JoinSet::new();
        for store in stores {
            closings.spawn_on(async move { store.close().await }, &self.handle);
        }
        let closing = async { while closings.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSING, closing).await.is_err() {
            tracing::error!("the stores' files were not closed within {CLOSING:?}");
        }
    }
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stores").field("known", &self.known.lock()).finish_non_exhaustive()
    }
}

/// A store as one user sees it: its keys, and whether it may change them.
///
/// A write is answered when it is visible to all, and on disk unless the store has `durable-within`. A caller that
/// drops the future of a write does not undo it.
#[derive(Clone, Debug)]
pub struct Bucket {
    store: Arc<Store>,
    owner: Owner,
    /// The user in whose turn the store works. Users of a shared store have the same `owner`.
    user: Owner,
    is_writable: bool,
}

impl Bucket {
    pub(crate) fn new(store: Arc<Store>, owner: Owner, is_writable: bool) -> Self {
        Self { store, user: owner.clone(), owner, is_writable }
    }

    pub(crate) fn used_by(self, user: Owner) -> Self {
        Self { user, ..self }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The value of a key. The value and the key may have up to `allowed` bytes together.
    ///
    /// # Errors
    ///
    /// A key of a wrong length, a larger value, a file that failed, too many waiting calls, or a closed store.
    pub async fn get(&self, key: String, allowed: u64) -> Result<Option<Bytes>, StoreError> {
        Ok(self.get_many(vec![key], allowed).await?.pop().flatten())
    }

    /// The values of keys, in the order of `keys`. The values and their keys may have up to `allowed` bytes together.
    ///
    /// # Errors
    ///
    /// Too many keys, keys of a wrong length, larger values, a file that failed, too many waiting calls, or a closed
    /// store.
    pub async fn get_many(&self, keys: Vec<String>, allowed: u64) -> Result<Vec<Option<Bytes>>, StoreError> {
        check_number(keys.len())?;
        keys.iter().try_for_each(|key| check_key(key))?;
        self.read(move |entries, owner| entries::get_many(entries, owner, keys, allowed)).await
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    ///
    /// A key of a wrong length, a file that failed, too many waiting calls, or a closed store.
    pub async fn exists(&self, key: String) -> Result<bool, StoreError> {
        check_key(&key)?;
        self.read(move |entries, owner| Ok(Ok(entries.get((owner, &*key))?.is_some()))).await
    }

    /// The keys with a prefix that come after the key `after`, in the order of their bytes: at most `limit`, where 0
    /// counts as 1, and at most [`MAX_PAGE`](crate::MAX_PAGE). Keys that come or go between two pages do not make
    /// others appear twice or be left out.
    ///
    /// # Errors
    ///
    /// A file that failed, too many waiting calls, or a closed store.
    pub async fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.read(move |entries, owner| Ok(Ok(entries::list(entries, owner, after, &prefix, limit)?))).await
    }

    /// Sets values, and deletes keys whose value is `None`: all of them, or none if it fails. Returns how many of the
    /// keys had a value.
    ///
    /// # Errors
    ///
    /// Too many keys, keys or values out of bounds, no room, a grant to read only, a file that failed, too many waiting
    /// calls, or a closed store.
    pub async fn change(&self, changes: Vec<Change>) -> Result<usize, StoreError> {
        check_changes(&changes)?;
        let of_owner = |(key, value)| (self.owner.clone(), key, value);
        match self.write(Write::Change(changes.into_iter().map(of_owner).collect())).await? {
            Written::Changed(existed) => Ok(existed),
            _ => Err(StoreError::Closed),
        }
    }

    /// Adds `delta` to a number in decimal text, and returns the sum, which must be in `range`. A key without a value
    /// counts as 0.
    ///
    /// # Errors
    ///
    /// A value that is no number, a sum out of the range, and the errors of [`change`](Self::change).
    pub async fn increment(
        &self,
        key: String,
        delta: i128,
        range: RangeInclusive<i128>,
    ) -> Result<i128, StoreError> {
        check_key(&key)?;
        match self.write(Write::Increment { key, delta, range }).await? {
            Written::Number(sum) => Ok(sum),
            _ => Err(StoreError::Closed),
        }
    }

    /// Replaces a key's value if it is still `expected`, where `None` stands for no value. Otherwise returns the value
    /// that is there.
    ///
    /// # Errors
    ///
    /// The errors of [`change`](Self::change).
    pub async fn swap(
        &self,
        key: String,
        expected: Option<Bytes>,
        value: Option<Bytes>,
    ) -> Result<Result<(), Option<Bytes>>, StoreError> {
        check_key(&key)?;
        match self.write(Write::Swap { key, expected, value }).await? {
            Written::Swapped(outcome) => Ok(outcome),
            _ => Err(StoreError::Closed),
        }
    }

    /// The SHA-256 of a key's value, which may be of any size. It is computed on the blocking pool. `None` if the key
    /// has no value.
    ///
    /// # Errors
    ///
    /// A key of a wrong length, a file that failed, too many waiting calls, or a closed store.
    pub async fn hash(&self, key: String) -> Result<Option<[u8; 32]>, StoreError> {
        check_key(&key)?;
        self.read(move |entries, owner| Ok(Ok(entries::hash(entries, owner, &key)?))).await
    }

    /// Replaces a key's value if its SHA-256 is still `seen`, where `None` stands for no value. Otherwise returns the
    /// hash of the value that is there.
    ///
    /// # Errors
    ///
    /// The errors of [`change`](Self::change).
    pub async fn swap_seen(
        &self,
        key: String,
        seen: Option<[u8; 32]>,
        value: Option<Bytes>,
    ) -> Result<Result<(), Option<[u8; 32]>>, StoreError> {
        check_key(&key)?;
        match self.write(Write::SwapSeen { key, seen, value }).await? {
            Written::SwappedSeen(outcome) => Ok(outcome),
            _ => Err(StoreError::Closed),
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&entries::Read, &str) -> Result<Result<T, StoreError>, StorageError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let owner = self.owner.clone();
        self.store.read(&self.user, move |snapshot| Ok(read(&snapshot.entries, &owner)?)).await
    }

    async fn write(&self, write: Write) -> Result<Written, StoreError> {
        if !self.is_writable {
            return Err(StoreError::ReadOnly);
        }
        self.store.write_as(&self.user, self.owner.clone(), write).await
    }
}

//! The stores of one Main.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{runtime::Handle, task::JoinSet};
use weir_config::{DirMode, StoreGrant};
use weir_names::StoreName;

use crate::{Bucket, OnChange, Store, StoresConfig};

/// Time for all files to be written and closed at the end.
const CLOSING: Duration = Duration::from_secs(10);

/// The stores of one Main, by name.
pub struct Stores {
    handle: Handle,
    on_change: OnChange,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    config: StoresConfig,
    /// Also those that the configuration has no more: one that comes back is the same.
    by_name: BTreeMap<StoreName, Arc<Store>>,
}

/// Why a guest cannot have a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// It is not granted. It may exist or not.
    #[error("the store is not granted")]
    NotGranted,
    /// It is granted, and not configured.
    #[error("there is no such store")]
    Unknown,
}

impl Stores {
    /// No stores yet. Their work runs on the pool of `handle`, whose runtime must have timers.
    #[must_use]
    pub fn new(handle: Handle, on_change: OnChange) -> Self {
        Self { handle, on_change, known: Mutex::default() }
    }

    /// Takes a new configuration, with files in `dir`. Opens no file. Stores that it lacks are closed.
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
                // Main's end closes it again, and so waits for this.
                drop(self.handle.spawn(async move { store.close().await }));
            }
        }
        known.config = config.clone();
    }

    /// The stores, in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Store>> {
        let known = self.known.lock();
        known.config.0.keys().filter_map(|name| known.by_name.get(name)).cloned().collect()
    }

    /// A store by its name.
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
    /// It is not granted, or there is none.
    pub fn bucket(&self, owner: &str, grants: &[StoreGrant], name: &str) -> Result<Bucket, Unavailable> {
        let grant = grants.iter().find(|grant| grant.name.as_str() == name).ok_or(Unavailable::NotGranted)?;
        self.bucket_of(owner, name, grant.mode == DirMode::Rw).ok_or(Unavailable::Unknown)
    }

    /// A store as `owner` sees it, without a grant.
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
            // Logged there. The next use tries again.
            let _logged = store.open().await;
        }
    }

    /// Writes and closes all files.
    pub async fn close(&self) {
        let stores: Vec<_> = self.known.lock().by_name.values().cloned().collect();
        stores.iter().for_each(|store| store.refuse());
        // All at once: a large one that is compacted or checked does not keep the others from being written.
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

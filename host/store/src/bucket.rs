//! A store as one user sees it.

use std::{ops::RangeInclusive, sync::Arc};

use bytes::Bytes;

use crate::{
    MAX_PAGE, Store, StoreError,
    entries::{check_changes, check_key, check_number},
    work::{Change, Found, Owner, Page, Read, Write, Written},
};

/// A store as one user sees it: its keys, and whether it may change them.
///
/// A write is answered when it is visible to all, and on disk unless the store has `durable-within`. A caller that
/// drops the future of a write does not undo it.
#[derive(Clone, Debug)]
pub struct Bucket {
    store: Arc<Store>,
    owner: Owner,
    /// The user: each has its turn.
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

    /// The value of a key, up to `allowed` bytes with its key.
    ///
    /// # Errors
    ///
    /// A key of a wrong length, a larger value, a file that failed, or a closed store.
    pub async fn get(&self, key: String, allowed: u64) -> Result<Option<Bytes>, StoreError> {
        Ok(self.get_many(vec![key], allowed).await?.pop().flatten())
    }

    /// The values of keys, in their order, of up to `allowed` bytes together.
    ///
    /// # Errors
    ///
    /// Too many keys, keys of a wrong length, larger values, a file that failed, or a closed store.
    pub async fn get_many(&self, keys: Vec<String>, allowed: u64) -> Result<Vec<Option<Bytes>>, StoreError> {
        check_number(keys.len())?;
        keys.iter().try_for_each(|key| check_key(key))?;
        match self.store.read(self.owner.clone(), Read::Get { keys, allowed }).await? {
            Found::Values(values) => Ok(values),
            _ => Err(StoreError::Closed),
        }
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    ///
    /// A key of a wrong length, a file that failed, or a closed store.
    pub async fn exists(&self, key: String) -> Result<bool, StoreError> {
        check_key(&key)?;
        match self.store.read(self.owner.clone(), Read::Exists { key }).await? {
            Found::Exists(exists) => Ok(exists),
            _ => Err(StoreError::Closed),
        }
    }

    /// Keys with a prefix after one, in the order of their bytes: at most `limit`, and at most [`MAX_PAGE`]. Keys that
    /// come or go between two pages do not make others appear twice or be left out.
    ///
    /// # Errors
    ///
    /// A file that failed, or a closed store.
    pub async fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let read = Read::List { after, prefix, limit: limit.min(MAX_PAGE) };
        match self.store.read(self.owner.clone(), read).await? {
            Found::Page(page) => Ok(page),
            _ => Err(StoreError::Closed),
        }
    }

    /// Sets values (some) and deletes keys (none): all, or none if it fails. Returns how many of the keys had a value.
    ///
    /// # Errors
    ///
    /// Too many keys, keys or values out of bounds, no room, a grant to read, a file that failed, or a closed store.
    pub async fn change(&self, changes: Vec<Change>) -> Result<usize, StoreError> {
        check_changes(&changes)?;
        match self.write(Write::Change(changes)).await? {
            Written::Changed(existed) => Ok(existed),
            _ => Err(StoreError::Closed),
        }
    }

    /// Adds `delta` to a number in decimal text, 0 if there is none, within a range. Returns the sum.
    ///
    /// # Errors
    ///
    /// A value that is no number, a sum out of the range, and as [`change`](Self::change).
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

    /// Replaces the `expected` value, or its absence, by another. Otherwise returns the value that is there.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
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

    /// The SHA-256 of a key's value, whatever its size. It is made on the pool.
    ///
    /// # Errors
    ///
    /// A key of a wrong length, a file that failed, or a closed store.
    pub async fn hash(&self, key: String) -> Result<Option<[u8; 32]>, StoreError> {
        check_key(&key)?;
        match self.store.read(self.owner.clone(), Read::Hash { key }).await? {
            Found::Hash(hash) => Ok(hash),
            _ => Err(StoreError::Closed),
        }
    }

    /// Replaces a value whose SHA-256 is still the one `seen`, or its absence. Otherwise returns the hash of the value
    /// that is there.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
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

    async fn write(&self, write: Write) -> Result<Written, StoreError> {
        if !self.is_writable {
            return Err(StoreError::ReadOnly);
        }
        self.store.write_as(&self.user, self.owner.clone(), write).await
    }
}

//! Key-value stores: one file each, with quotas, shared by the guests that an operator names.
//!
//! Owns the files, the order of writes, what is on disk when a write is answered, and `[store.NAME]` of the
//! operator's file. Knows nothing of wasmtime, of the bus, or of the interfaces that reach a store.
//!
//! - Blocking work runs on the pool of the [`Handle`](tokio::runtime::Handle) that the stores were made with. A store
//!   takes at most one thread for writes, one for reads and one to open its file, and none while nobody uses it.
//! - Writes that wait are made one transaction, up to a bound. Each is answered once, with an outcome of its own.

mod bound;
mod config;
mod entries;
mod error;
mod file;
mod line;
mod own;
mod store;
mod stores;
#[cfg(test)]
mod tests;
mod work;

pub use self::{
    config::{StoreConfig, StoresConfig},
    error::{OpenError, StoreError},
    file::Opened,
    own::OwnDataError,
    store::{Changed, OnChange, Store},
    stores::{Bucket, Stores, Unavailable},
    work::{Page, Row, Rows, StoreUsage},
};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1024;

/// Bytes that an entry counts with beside its owner, its key and its value.
pub const ENTRY_BYTES: u64 = 128;

/// How many times a store's `bytes` its file may have.
pub const FILE_TIMES: u64 = 4;

/// The most keys that one call sets, deletes or asks for.
pub const MAX_KEYS_AT_ONCE: usize = 4096;

/// The most keys in a page of a list.
pub const MAX_PAGE: usize = 1000;

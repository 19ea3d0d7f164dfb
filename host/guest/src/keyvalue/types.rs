//! The types of `wasi:keyvalue`, and the values behind a guest's handles.

use std::collections::VecDeque;

use sha2::{Digest, Sha256};
use wasmtime::component::{ComponentType, Lower, Resource};
use weir_store::{Bucket, StoreError, Unavailable};

/// How many places in lists of keys a bucket keeps for its guest. The first draft has numbers for such places.
const CURSORS: usize = 8;

#[derive(ComponentType, Lower, Debug)]
#[component(variant)]
pub(super) enum Error {
    #[component(name = "no-such-store")]
    NoSuchStore,
    #[component(name = "access-denied")]
    AccessDenied,
    #[component(name = "other")]
    Other(String),
}

#[derive(ComponentType, Lower, Debug)]
#[component(variant)]
pub(super) enum CasError {
    #[component(name = "store-error")]
    StoreError(Error),
    #[component(name = "cas-failed")]
    CasFailed(Resource<OpenCas>),
}

/// A page of keys in the first draft.
#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct KeyResponse {
    pub(super) keys: Vec<String>,
    pub(super) cursor: Option<u64>,
}

/// A page of keys in the second draft.
#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct KeyResponse2 {
    pub(super) keys: Vec<String>,
    pub(super) cursor: Option<String>,
}

/// A guest's handle to a store.
#[derive(Debug)]
pub(super) struct OpenBucket {
    pub(super) bucket: Bucket,
    /// The places that are kept, the oldest first: each a number, and the key after which the list goes on.
    cursors: VecDeque<(u64, String)>,
    /// The number that was given last.
    last: u64,
}

impl OpenBucket {
    pub(super) fn new(bucket: Bucket) -> Self {
        Self { bucket, cursors: VecDeque::new(), last: 0 }
    }

    /// Keeps the key after which a list goes on, and returns a number for it.
    pub(super) fn keep(&mut self, key: String) -> u64 {
        if self.cursors.len() >= CURSORS {
            self.cursors.pop_front();
        }
        self.last = self.last.wrapping_add(1);
        self.cursors.push_back((self.last, key));
        self.last
    }

    /// Returns the key that was kept under this number, unless newer ones have taken its place.
    pub(super) fn kept(&self, cursor: u64) -> Option<String> {
        self.cursors.iter().find(|(known, _)| *known == cursor).map(|(_, key)| key.clone())
    }
}

/// A guest's handle to a swap. The handle holds only the hash of the value that the guest has seen, because many
/// handles to large values would fill Main's memory.
#[derive(Clone, Debug)]
pub(super) struct OpenCas {
    pub(super) bucket: Bucket,
    pub(super) key: String,
    /// The hash of the value that the guest has seen. None if there was no value.
    pub(super) seen: Option<[u8; 32]>,
}

/// Returns the SHA-256 of a value, or none if there is no value.
pub(super) fn hash(value: Option<&[u8]>) -> Option<[u8; 32]> {
    value.map(|value| Sha256::digest(value).into())
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::ReadOnly => Self::AccessDenied,
            StoreError::Closed => Self::NoSuchStore,
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<Unavailable> for Error {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::NotGranted => Self::AccessDenied,
            Unavailable::Unknown => Self::NoSuchStore,
        }
    }
}

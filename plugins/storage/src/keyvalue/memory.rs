//! The functions of `wasi:keyvalue` that this extension uses, over a map of this thread, for tests. A store outlives
//! the extension, as on disk.

use std::{cell::RefCell, collections::BTreeMap};

/// The most bytes of all keys and values of one store.
const ROOM: usize = 4096;

#[derive(Clone, Debug)]
#[expect(dead_code, reason = "the cases are those of `wasi:keyvalue`")]
pub(crate) enum Error {
    NoSuchStore,
    AccessDenied,
    Other(String),
}

#[derive(Debug)]
pub(crate) struct Bucket(String);

/// A page of keys.
pub(crate) struct Page {
    pub(crate) keys: Vec<String>,
    pub(crate) cursor: Option<u64>,
}

type Entries = BTreeMap<String, Vec<u8>>;

thread_local! {
    static STORES: RefCell<BTreeMap<String, Entries>> = RefCell::default();
    /// The calls that changed something, or would have if there were room.
    static WRITES: RefCell<usize> = const { RefCell::new(0) };
}

#[cfg(test)]
pub(crate) fn writes() -> usize {
    WRITES.with_borrow(|writes| *writes)
}

/// Opens a store. `none` stands for a store that the operator has not granted.
pub(crate) fn open(name: &str) -> Result<Bucket, Error> {
    if name == "none" { Err(Error::AccessDenied) } else { Ok(Bucket(name.to_owned())) }
}

pub(crate) fn set_many(bucket: &Bucket, pairs: &[(String, Vec<u8>)]) -> Result<(), Error> {
    bucket.change(|entries| entries.extend(pairs.iter().cloned()))
}

pub(crate) fn delete_many(bucket: &Bucket, keys: &[String]) -> Result<(), Error> {
    bucket.change(|entries| entries.retain(|key, _| !keys.contains(key)))
}

impl Bucket {
    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.read(|entries| entries.get(key).cloned()))
    }

    pub(crate) fn exists(&self, key: &str) -> Result<bool, Error> {
        Ok(self.read(|entries| entries.contains_key(key)))
    }

    /// Gives pages of two keys, so that a test with few keys needs several pages.
    pub(crate) fn list_keys(&self, cursor: Option<u64>) -> Result<Page, Error> {
        let begin = usize::try_from(cursor.unwrap_or_default()).unwrap_or(usize::MAX);
        let keys: Vec<_> = self.read(|entries| entries.keys().skip(begin).take(2).cloned().collect());
        let cursor = (keys.len() == 2).then_some(begin as u64 + 2);
        Ok(Page { keys, cursor })
    }

    fn read<T>(&self, look: impl FnOnce(&Entries) -> T) -> T {
        STORES.with_borrow_mut(|stores| look(stores.entry(self.0.clone()).or_default()))
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) -> Result<(), Error> {
        WRITES.with_borrow_mut(|writes| *writes += 1);
        STORES.with_borrow_mut(|stores| {
            let before = stores.entry(self.0.clone()).or_default();
            let mut after = before.clone();
            change(&mut after);
            let bytes: usize = after.iter().map(|(key, value)| key.len() + value.len()).sum();
            if bytes > ROOM {
                let text = format!("the store is full: its keys and values would have {bytes} bytes");
                return Err(Error::Other(text));
            }
            *before = after;
            Ok(())
        })
    }
}

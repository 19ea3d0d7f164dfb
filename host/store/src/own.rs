//! All that one owner has in stores that are not shared, as one stream of bytes: written, and put back.
//!
//! The stream has a line with its format, then for each store its name and the owner's entries, in order, then an end.
//! Numbers are little-endian. Both directions block, and hold about a page of entries at a time.

use std::{
    collections::BTreeSet,
    io::{self, Read, Write as IoWrite},
    sync::Arc,
};

use bytes::Bytes;
use weir_names::StoreName;

use crate::{
    MAX_KEY, MAX_KEYS_AT_ONCE, MAX_PAGE, Store, StoreError, Stores,
    work::{Owner, Row, Rows, Write},
};

const FORMAT: &[u8] = b"weir data 1\n";

/// What comes next in a stream.
const STORE: u8 = b's';
const ENTRY: u8 = b'e';
const END: u8 = b'.';

/// The most bytes of a value of any store, the greatest `value-size`.
const MAX_VALUE: u64 = 64 << 20;

/// Bytes of values that are written in one transaction. The last value may exceed them.
const AT_ONCE: usize = 1 << 20;

/// Why the entries of an owner cannot be copied or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnDataError {
    /// A store cannot be read or written.
    #[error("store `{store}`: {source}")]
    Store {
        /// The store.
        store: String,
        /// Why.
        source: StoreError,
    },
    /// A store of the stream is not configured any more, or is shared now.
    #[error("store `{0}` is no longer configured, or is shared now")]
    Gone(String),
    /// The stream cannot be read or written.
    #[error("the copy cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

impl Stores {
    /// Writes all entries of `owner` in those of these stores that are not shared. Entries that change meanwhile are in one
    /// state or the other. Blocks: not on a thread of the runtime.
    ///
    /// # Errors
    ///
    /// A store cannot be read, or `to` not written.
    pub fn copy_own(
        &self,
        owner: &str,
        stores: &BTreeSet<StoreName>,
        to: &mut dyn IoWrite,
    ) -> Result<(), OwnDataError> {
        let owner = Owner::from(owner);
        to.write_all(FORMAT)?;
        for store in stores.iter().filter_map(|name| self.own(name.as_str())) {
            // Writes that a user has left behind are done first.
            self.write_own(&store, &owner, Vec::new())?;
            to.write_all(&[STORE])?;
            put(to, store.name().as_str().as_bytes())?;
            let mut after = None;
            loop {
                let page = self.page(&store, &owner, after, true)?;
                for Row { key, value, .. } in &page.rows {
                    to.write_all(&[ENTRY])?;
                    put(to, key.as_bytes())?;
                    put(to, value.as_deref().unwrap_or_default())?;
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(to.write_all(&[END])?)
    }

    /// Replaces the entries of `owner` in the stores that a stream of [`copy_own`](Self::copy_own) names, which were there
    /// when it was made. Leaves others as they are. All is on the disk when this returns. After a failure some is replaced,
    /// and it can be made again. Blocks: not on a thread of the runtime.
    ///
    /// # Errors
    ///
    /// A store cannot be written, is not there, or has no room; `from` cannot be read, or is no such stream.
    pub fn put_back_own(&self, owner: &str, from: &mut dyn Read) -> Result<(), OwnDataError> {
        let owner = Owner::from(owner);
        let mut format = [0; FORMAT.len()];
        from.read_exact(&mut format)?;
        if format != FORMAT {
            return Err(malformed().into());
        }
        let mut next = tag(from)?;
        while next != END {
            if next != STORE {
                return Err(malformed().into());
            }
            let name = text(from)?;
            next = tag(from)?;
            let Some(store) = self.own(&name) else {
                if next == ENTRY {
                    return Err(OwnDataError::Gone(name));
                }
                continue;
            };
            self.clear_own(&store, &owner)?;
            let (mut entries, mut bytes) = (Vec::new(), 0);
            loop {
                let is_entry = next == ENTRY;
                if is_entry {
                    let (key, value) = (text(from)?, Bytes::from(take(from, MAX_VALUE)?));
                    bytes += value.len();
                    entries.push((owner.clone(), key, Some(value)));
                }
                if !is_entry || bytes >= AT_ONCE || entries.len() >= MAX_KEYS_AT_ONCE {
                    self.write_own(&store, &owner, std::mem::take(&mut entries))?;
                    bytes = 0;
                }
                if !is_entry {
                    break;
                }
                next = tag(from)?;
            }
            self.flush_own(&store)?;
        }
        Ok(())
    }

    /// The store of this name, if it is configured, and users have entries of their own there.
    fn own(&self, name: &str) -> Option<Arc<Store>> {
        self.get(name).filter(|store| !store.config().shared)
    }

    fn flush_own(&self, store: &Arc<Store>) -> Result<(), OwnDataError> {
        self.handle.block_on(store.flush()).map_err(failed(store))
    }

    fn clear_own(&self, store: &Arc<Store>, owner: &Owner) -> Result<(), OwnDataError> {
        self.write_own(store, owner, Vec::new())?;
        loop {
            let Rows { rows, next } = self.page(store, owner, None, false)?;
            let gone = rows.into_iter().map(|row| (owner.clone(), row.key, None)).collect();
            self.write_own(store, owner, gone)?;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    fn page(
        &self,
        store: &Arc<Store>,
        owner: &Owner,
        after: Option<(String, String)>,
        values: bool,
    ) -> Result<Rows, OwnDataError> {
        let rows = store.rows(Some(owner.to_string()), after, String::new(), MAX_PAGE, values);
        self.handle.block_on(rows).map_err(failed(store))
    }

    /// Writes in the turn of the owner: after all that it has written.
    fn write_own(
        &self,
        store: &Arc<Store>,
        owner: &Owner,
        entries: Vec<(Owner, String, Option<Bytes>)>,
    ) -> Result<(), OwnDataError> {
        let written = self.handle.block_on(store.write(owner.clone(), Write::Change(entries)));
        written.map(drop).map_err(failed(store))
    }
}

fn failed(store: &Store) -> impl FnOnce(StoreError) -> OwnDataError {
    let store = store.name().to_string();
    move |source| OwnDataError::Store { store, source }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is no copy of a store's entries")
}

fn put(to: &mut dyn IoWrite, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

fn tag(from: &mut dyn Read) -> io::Result<u8> {
    let mut tag = [0];
    from.read_exact(&mut tag)?;
    Ok(u8::from_le_bytes(tag))
}

fn text(from: &mut dyn Read) -> io::Result<String> {
    String::from_utf8(take(from, MAX_KEY as u64)?).map_err(|_| malformed())
}

/// Reads bytes with their number before them, of at most `most`.
fn take(from: &mut dyn Read, most: u64) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > most {
        let text = format!("it has a key or value of {length} bytes, and {most} are allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

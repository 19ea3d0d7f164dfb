//! Keeps values across restarts and power cuts: the contract `local.storage@1`.
//!
//! A thin extension over `wasi:keyvalue`: the store that its operator grants keeps the values, bounds them and writes
//! them to disk. A change is answered when it is on disk.
//!
//! Keys are any strings of 1 to 256 bytes, values any JSON of up to 1 MiB. A `null` reads as no value. Errors
//! of its own: `full`, `too-large`, `invalid-argument`, and `io`. After `io` the change may or may not be
//! there.
//!
//! A value stays the text that came: its numbers lose nothing, and a small text cannot become a large tree in memory.

use std::{cell::OnceCell, process::ExitCode};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_contracts::storage::{self, Deleted, Key, Keys, Prefix};
use weir_sdk::{Context, Empty, Error, Extension, Operation};

use self::{
    commits::Commits,
    store::{Change, Store},
};

mod commits;
mod keyvalue;
mod store;

weir_sdk::manifest! {
    id: "storage",
    fulfills: &[storage::CONTRACT],
}

/// The default of `store`.
const STORE: &str = "storage";

/// The longest key, in bytes.
const MAX_KEY: usize = 256;

/// Bytes of all keys that one answer lists: well within a message.
const MAX_LIST: usize = 512 * 1024;

/// The longest value, in bytes of JSON.
const MAX_VALUE: usize = 1024 * 1024;

/// `storage::GET`, with the value as the text that came.
const GET: Operation<storage::Key, Found> = storage::CONTRACT.operation(storage::GET.name());
/// `storage::SET`, with the value as the text that came.
const SET: Operation<Entry, Empty> = storage::CONTRACT.operation(storage::SET.name());

fn main() -> ExitCode {
    extension().run()
}

fn extension() -> Extension<Storage> {
    Extension::new(MANIFEST, Storage::default())
        .on_start(async |storage: &Storage, context: &Context| storage.open(context))
        .on(GET, async |storage: &Storage, _: &Context, key| storage.get(&key))
        .on(SET, Storage::set)
        .on(storage::DELETE, Storage::delete)
        .on(storage::LIST, async |storage: &Storage, _: &Context, prefix| storage.list(&prefix))
}

/// `storage::Entry`, with the value as the text that came.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Box<RawValue>,
}

/// `storage::Found`, with the value as the text that came.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) value: Option<Box<RawValue>>,
}

#[derive(Default)]
struct Storage {
    commits: OnceCell<Commits>,
}

impl Storage {
    fn open(&self, context: &Context) -> Result<(), Error> {
        let name = context.config("store")?;
        let store = Store::open(name.as_deref().unwrap_or(STORE))?;
        self.commits.get_or_init(|| Commits::new(store));
        Ok(())
    }

    fn get(&self, Key { key }: &Key) -> Result<Found, Error> {
        check(key)?;
        Ok(Found { value: self.commits()?.store().get(key)? })
    }

    async fn set(&self, _: &Context, Entry { key, value }: Entry) -> Result<Empty, Error> {
        check(&key)?;
        let bytes = value.get().len();
        if bytes > MAX_VALUE {
            let text = format!("a value of {bytes} bytes; at most {MAX_VALUE} are possible");
            return Err(Error::handler("too-large", text));
        }
        self.commits()?.commit(Change::Set(key, value)).await?;
        Ok(Empty {})
    }

    async fn delete(&self, _: &Context, Key { key }: Key) -> Result<Deleted, Error> {
        check(&key)?;
        Ok(Deleted { existed: self.commits()?.commit(Change::Delete(key)).await? })
    }

    fn list(&self, Prefix { prefix }: &Prefix) -> Result<Keys, Error> {
        let keys = self.commits()?.store().keys(prefix)?;
        let bytes: usize = keys.iter().map(String::len).sum();
        if bytes > MAX_LIST {
            let text = format!("keys of {bytes} bytes in all begin so; {MAX_LIST} can be listed");
            return Err(Error::handler("too-large", text));
        }
        Ok(Keys { keys })
    }

    fn commits(&self) -> Result<&Commits, Error> {
        self.commits.get().ok_or_else(|| Error::failed("not open yet"))
    }
}

/// Refuses a key that is empty or too long.
fn check(key: &str) -> Result<(), Error> {
    match key.len() {
        1..=MAX_KEY => Ok(()),
        bytes => {
            Err(Error::invalid_argument(format_args!("a key of {bytes} bytes; 1 to {MAX_KEY} are possible")))
        }
    }
}

#[cfg(test)]
mod tests;

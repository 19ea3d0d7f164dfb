//! Keeps values across restarts and power cuts: the contract `local.storage@1`.
//!
//! All values are in memory and, as a log of changes, in the one directory that the operator grants. No other
//! extension may have that directory. A change is answered when it is on disk. `max-bytes` of the `config`
//! table limits the stored bytes; the default, 4 MiB, is a quarter of the memory of the class `medium`.
//!
//! Keys are any strings of 1 to 256 bytes, values any JSON of up to 1 MiB. A `null` reads as no value. Errors
//! of its own: `full`, `too-large`, `invalid-argument`, and `io`. After `io` the change may or may not be
//! there.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
    process::ExitCode,
};

use weir_contracts::storage::{self, Deleted, Key, Keys, Prefix};
use weir_sdk::{Context, Dir, Empty, Error, Extension, log};

use self::{
    change::Change,
    commits::Commits,
    log_file::Damage,
    operations::{Entry, Found},
    store::Store,
};

mod change;
mod commits;
mod entries;
mod log_file;
mod operations;
mod recovery;
mod store;

weir_sdk::manifest! {
    id: "storage",
    fulfills: &[storage::CONTRACT],
    dirs: &[Dir::read_write("/data")],
}

/// The default of `max-bytes`.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The longest key, in bytes.
const MAX_KEY: usize = 256;

/// Bytes of all keys that one answer lists: well within a message.
const MAX_LIST: usize = 512 * 1024;

/// The longest value, in bytes of JSON.
const MAX_VALUE: usize = 1024 * 1024;

fn main() -> ExitCode {
    extension("/data").run()
}

fn extension(directory: impl Into<PathBuf>) -> Extension<Storage> {
    let storage = Storage { directory: directory.into(), commits: OnceCell::new() };
    Extension::new(MANIFEST, storage)
        .on_start(async |storage: &Storage, context: &Context| storage.open(context))
        .on(operations::GET, async |storage: &Storage, _: &Context, key| storage.get(&key))
        .on(operations::SET, Storage::set)
        .on(storage::DELETE, Storage::delete)
        .on(storage::LIST, async |storage: &Storage, _: &Context, prefix| storage.list(&prefix))
}

struct Storage {
    directory: PathBuf,
    commits: OnceCell<Commits>,
}

impl Storage {
    fn open(&self, context: &Context) -> Result<(), Error> {
        let max_bytes = match context.config("max-bytes")? {
            None => MAX_BYTES,
            Some(text) => text.parse().map_err(|_| {
                Error::invalid_argument(format_args!("`max-bytes` must be a number of bytes, not `{text}`"))
            })?,
        };
        let (store, damage) = Store::open(&self.directory, max_bytes)?;
        report(&damage, &self.directory);
        self.commits.get_or_init(|| Commits::new(store));
        Ok(())
    }

    fn get(&self, Key { key }: &Key) -> Result<Found, Error> {
        check(key)?;
        Ok(Found { value: self.commits()?.read(|entries| entries.get(key)) })
    }

    async fn set(&self, _: &Context, Entry { key, value }: Entry) -> Result<Empty, Error> {
        check(&key)?;
        let bytes = value.get().len();
        if bytes > MAX_VALUE {
            let text = format!("a value of {bytes} bytes; at most {MAX_VALUE} are possible");
            return Err(Error::handler("too-large", text));
        }
        self.commits()?.commit(Change::set(key, value)?).await?;
        Ok(Empty {})
    }

    async fn delete(&self, _: &Context, Key { key }: Key) -> Result<Deleted, Error> {
        check(&key)?;
        Ok(Deleted { existed: self.commits()?.commit(Change::Delete(key)).await? })
    }

    fn list(&self, Prefix { prefix }: &Prefix) -> Result<Keys, Error> {
        let keys = self.commits()?.read(|entries| entries.keys(prefix));
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

fn check(key: &str) -> Result<(), Error> {
    match key.len() {
        1..=MAX_KEY => Ok(()),
        bytes => {
            Err(Error::invalid_argument(format_args!("a key of {bytes} bytes; 1 to {MAX_KEY} are possible")))
        }
    }
}

fn report(damage: &Damage, directory: &Path) {
    if damage.torn_bytes > 0 {
        log::warn(
            "a change that was under way when storage ended is dropped",
            &[("bytes", &damage.torn_bytes)],
        );
    }
    if let Some(kept) = &damage.kept_as {
        log::warn(
            "the log is damaged: what can be read of it is kept, and the file is put aside",
            &[("lines", &damage.bad_lines), ("file", &directory.join(kept).display())],
        );
    }
}

#[cfg(test)]
mod tests;

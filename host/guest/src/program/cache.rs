//! Compiled code, kept on disk for the next start.
//!
//! Each use looks at the directory as it is, so several Mains can share it and a user can empty it. An entry runs only
//! if its MAC was made with this device's own key. A failure costs a warning and a compilation, never a start, unless
//! the directory's file system hangs.

#[cfg(test)]
mod tests;

use std::{
    fs,
    hash::{Hash, Hasher},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use rustix::fs::statvfs;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use weir_config::{ArtifactHash, bytes};
use weir_private_dir::{DirError, Mac, MacKey, PrivateDir};

use super::code::{Code, HEADER};

/// The first bytes of an entry. The last of them is the version of the format. The MAC and the code follow.
const MAGIC: &[u8; 8] = b"\0weirca\x03";

/// The text that a MAC begins with, which names its purpose and the version of the format.
const DOMAIN: &[u8] = b"weir cache 3\n";

/// The name of the file with the key, beside the entries.
const KEY_FILE: &str = "weir-cache.key";

/// The name prefixes of files being written, and of entries.
const PREFIXES: [&str; 2] = [".weir-cache-", "weir-cache-"];

const MAC_SIZE: usize = 32;

/// The range of the size by default: from the code of some extensions to that of some hundred.
const SMALLEST: u64 = 64 << 20;
const LARGEST: u64 = 4 << 30;

/// A directory of compiled code.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    dir: PrivateDir,
    /// The most bytes of all entries. By default they follow the file system, which is asked when one is written.
    size: Arc<OnceLock<u64>>,
}

/// Names an entry: the hash of the component, and the hash of the engine and the format.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryId {
    component: ArtifactHash,
    engine: ArtifactHash,
}

/// The room that an entry has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// Other entries were removed.
    Made,
}

/// Why an entry cannot be used, or cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum CacheError {
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error("`{}` was changed, or written by somebody else", .0.display())]
    NotAuthentic(PathBuf),
    #[error("it takes {bytes} bytes, and `main.cache-size` is {}", self::bytes(*.allowed))]
    TooLarge { bytes: u64, allowed: u64 },
    #[error("it was compiled by another version, for another processor or with other settings")]
    OtherEngine,
}

/// Whether a directory of entries is this user's and nobody else can write to it. Returns none if the directory is not
/// there. Returns false also if that cannot be told.
pub(super) fn is_ours(dir: &Path) -> Option<bool> {
    match Cache::new(dir.to_owned(), Some(0)).dir.is_there() {
        Ok(is_there) => is_there.then_some(true),
        Err(_) => Some(false),
    }
}

/// Makes a directory of entries, unless it is there. Returns whether it can be used.
pub(super) fn make(dir: &Path) -> bool {
    Cache::new(dir.to_owned(), Some(0)).dir.make().is_ok()
}

impl EntryId {
    pub(super) fn new(component: ArtifactHash, engine: &Engine) -> Self {
        // With the format in the hash, entries in another format count as entries of another engine.
        let mut hasher = EngineHasher(Sha256::new_with_prefix(DOMAIN));
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Self { component, engine: ArtifactHash::from_bytes(hasher.0.finalize().into()) }
    }

    /// Returns the name prefix of all entries of this component, for any engine.
    fn of_any_engine(&self) -> String {
        format!("{}{}-", PREFIXES[1], self.component)
    }

    fn file_name(&self) -> String {
        format!("{}{}", self.of_any_engine(), self.engine)
    }
}

impl Cache {
    /// The cache in this directory, with at most this many bytes of entries.
    pub(super) fn new(dir: PathBuf, size: Option<u64>) -> Self {
        let size = size.map(OnceLock::from).unwrap_or_default().into();
        Self { dir: PrivateDir::new(dir, PREFIXES[0]), size }
    }

    /// Returns the most bytes of all entries. The first call may ask the file system.
    pub(super) fn size(&self) -> u64 {
        *self.size.get_or_init(|| default_size(self.dir.path()))
    }

    /// Returns the code of an entry, if the entry is there. An entry with more than `allowed` bytes of code counts as
    /// missing. Fails if the entry is not authentic, cannot be read, or is there only for another engine.
    pub(super) fn get(&self, id: EntryId, allowed: u64) -> Result<Option<Code>, CacheError> {
        let path = self.dir.path().join(id.file_name());
        let Some(file) = self.dir.is_there()?.then(|| self.dir.open(id.file_name())).transpose()?.flatten()
        else {
            return if self.has_of_another_engine(id) { Err(CacheError::OtherEngine) } else { Ok(None) };
        };
        let allowed = allowed.saturating_add((MAGIC.len() + MAC_SIZE + HEADER) as u64);
        if file.metadata().map_err(DirError::io(&path))?.len() > allowed {
            return Ok(None);
        }
        let mut entry = Vec::new();
        (&file).take(allowed).read_to_end(&mut entry).map_err(DirError::io(&path))?;
        let foreign = || CacheError::NotAuthentic(path.clone());
        let key = self.dir.key(KEY_FILE)?.ok_or_else(foreign)?;
        let (mac, code) = entry
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_first_chunk::<MAC_SIZE>())
            .ok_or_else(foreign)?;
        mac_of(&key, id, code).verify_slice(mac).map_err(|_| foreign())?;
        // Marks the entry as used, so that it is not removed first. Where that fails, no entry can be removed either.
        let _read_only = file.set_modified(SystemTime::now());
        entry.drain(..MAGIC.len() + MAC_SIZE);
        Ok(Some(Code::cached(entry)))
    }

    /// Writes an entry, and removes others if there is no room for it. Makes the directory and the key if need be.
    pub(super) fn put(&self, id: EntryId, code: &Code) -> Result<Room, CacheError> {
        let bytes = (MAGIC.len() + MAC_SIZE + code.bytes().len()) as u64;
        let size = self.size();
        if bytes > size {
            return Err(CacheError::TooLarge { bytes, allowed: size });
        }
        self.dir.make()?;
        let mac = mac_of(&self.dir.key_or_new(KEY_FILE)?, id, code.bytes()).finalize().into_bytes();
        let mut file = self.dir.temporary()?;
        [MAGIC.as_slice(), &mac, code.bytes()]
            .into_iter()
            .try_for_each(|part| file.write_all(part))
            .map_err(DirError::io(self.dir.path()))?;
        let name = id.file_name();
        file.persist(self.dir.path().join(&name))
            .map_err(|error| DirError::io(self.dir.path())(error.error))?;
        Ok(self.make_room(&name, size - bytes).map_err(DirError::io(self.dir.path()))?)
    }

    /// Whether there is an entry of this component for any engine. Asked only when the entry itself is missing.
    fn has_of_another_engine(&self, id: EntryId) -> bool {
        let prefix = id.of_any_engine();
        fs::read_dir(self.dir.path())
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)))
    }

    /// Removes the least recently used entries until all but `kept` have at most `size` bytes together. Files that are
    /// being written count as entries, because a Main that was killed may have left them. Other files stay.
    fn make_room(&self, kept: &str, size: u64) -> io::Result<Room> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.dir.path())? {
            let entry = entry?;
            let name = entry.file_name();
            let is_ours =
                |name: &str| name != kept && name != KEY_FILE && PREFIXES.iter().any(|p| name.starts_with(p));
            // Another Main may have removed the entry.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() && name.to_str().is_some_and(is_ours) {
                entries.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        entries.sort();
        let mut room = Room::Free;
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in entries {
            if total <= size {
                break;
            }
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => (room, total) = (Room::Made, total.saturating_sub(bytes)),
            }
        }
        Ok(room)
    }
}

/// A tenth of the file system of a directory, which need not be there yet.
fn default_size(dir: &Path) -> u64 {
    let found = dir.ancestors().find_map(|dir| statvfs(dir).ok());
    let bytes = found.map_or(0, |found| found.f_frsize.saturating_mul(found.f_blocks));
    (bytes / 10).clamp(SMALLEST, LARGEST)
}

fn mac_of(key: &MacKey, id: EntryId, code: &[u8]) -> impl Mac + use<> {
    key.mac()
        .chain_update(DOMAIN)
        .chain_update(id.component.as_bytes())
        .chain_update(id.engine.as_bytes())
        .chain_update(code)
}

/// Hashes with SHA-256, whose result is the same in every process. The result is taken from the field, and `finish` is
/// never asked.
struct EngineHasher(Sha256);

impl Hasher for EngineHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

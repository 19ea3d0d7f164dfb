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
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use hmac::{Hmac, KeyInit, Mac};
use rustix::{
    fs::{Mode, OFlags},
    process::geteuid,
};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use weir_config::{ArtifactHash, bytes};

use super::{
    code::{Code, HEADER},
    random,
};

/// The first bytes of an entry. The last of them is the version of the format. The MAC and the code follow.
const MAGIC: &[u8; 8] = b"\0weirca\x03";

/// The text that a MAC begins with, which names its purpose and the version of the format.
const DOMAIN: &[u8] = b"weir cache 3\n";

/// The name of the file with the key, beside the entries.
const KEY_FILE: &str = "weir-cache.key";

/// The name prefixes of files being written, and of entries.
const PREFIXES: [&str; 2] = [".weir-cache-", "weir-cache-"];

const MAC_SIZE: usize = 32;

/// The size of a block of SHA-256. HMAC (RFC 2104) uses a key of this size as it is.
const KEY_SIZE: usize = 64;

type HmacSha256 = Hmac<Sha256>;

/// A directory of compiled code.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    /// The most bytes of all entries.
    size: u64,
}

/// Names an entry: the hash of the component, and the hash of the engine and the format.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryId {
    component: ArtifactHash,
    engine: ArtifactHash,
}

/// Why an entry cannot be used, or cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum CacheError {
    #[error("`{}` cannot be used", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` must be a directory that this user owns and nobody else can write to", .0.display())]
    NotOurs(PathBuf),
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
    match (Cache { dir: dir.to_owned(), size: 0 }).opened() {
        Ok(is_there) => is_there.then_some(true),
        Err(_) => Some(false),
    }
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
    pub(super) fn new(dir: PathBuf, size: u64) -> Self {
        Self { dir, size }
    }

    /// Returns the code of an entry, if the entry is there. An entry with more than `allowed` bytes of code counts as
    /// missing. Fails if the entry is not authentic, cannot be read, or is there only for another engine.
    pub(super) fn get(&self, id: EntryId, allowed: u64) -> Result<Option<Code>, CacheError> {
        let path = self.dir.join(id.file_name());
        let Some(file) = self.opened()?.then(|| open(&path)).transpose()?.flatten() else {
            return if self.has_of_another_engine(id) { Err(CacheError::OtherEngine) } else { Ok(None) };
        };
        let failed = |source| CacheError::Io { path: path.clone(), source };
        let allowed = allowed.saturating_add((MAGIC.len() + MAC_SIZE + HEADER) as u64);
        if file.metadata().map_err(failed)?.len() > allowed {
            return Ok(None);
        }
        let mut entry = Vec::new();
        (&file).take(allowed).read_to_end(&mut entry).map_err(failed)?;
        let foreign = || CacheError::NotAuthentic(path.clone());
        let key = self.key()?.ok_or_else(foreign)?;
        let (mac, code) = entry
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_first_chunk::<MAC_SIZE>())
            .ok_or_else(foreign)?;
        key.mac(id, code).verify_slice(mac).map_err(|_| foreign())?;
        // Marks the entry as used, so that it is not removed first. Where that fails, no entry can be removed either.
        let _read_only = file.set_modified(SystemTime::now());
        entry.drain(..MAGIC.len() + MAC_SIZE);
        Ok(Some(Code::cached(entry)))
    }

    /// Writes an entry, and removes others to make room for it. Makes the directory and the key if need be.
    pub(super) fn put(&self, id: EntryId, code: &Code) -> Result<(), CacheError> {
        let bytes = (MAGIC.len() + MAC_SIZE + code.bytes().len()) as u64;
        if bytes > self.size {
            return Err(CacheError::TooLarge { bytes, allowed: self.size });
        }
        let failed = |source| CacheError::Io { path: self.dir.clone(), source };
        if !self.opened()? {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(failed)?;
            self.opened()?;
        }
        let key = match self.key()? {
            Some(key) => key,
            None => self.make_key()?,
        };
        let mac = key.mac(id, code.bytes()).finalize().into_bytes();
        let mut file = self.temporary()?;
        [MAGIC.as_slice(), &mac, code.bytes()]
            .into_iter()
            .try_for_each(|part| file.write_all(part))
            .map_err(failed)?;
        let name = id.file_name();
        file.persist(self.dir.join(&name)).map_err(|error| failed(error.error))?;
        self.make_room(&name, self.size - bytes).map_err(failed)
    }

    /// Whether the directory is there. Fails if it is not a directory, is not this user's, can be written to by others,
    /// or cannot be looked at.
    fn opened(&self) -> Result<bool, CacheError> {
        let metadata = match fs::metadata(&self.dir) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(CacheError::Io { path: self.dir.clone(), source }),
        };
        let ours = metadata.is_dir() && is_this_users(&metadata, 0o022);
        if ours { Ok(true) } else { Err(CacheError::NotOurs(self.dir.clone())) }
    }

    /// Reads the key. Returns none if there is no key, it is not this user's, others have any rights to it, or it has
    /// another size.
    fn key(&self) -> Result<Option<MacKey>, CacheError> {
        let path = self.dir.join(KEY_FILE);
        let Some(file) = open(&path)? else { return Ok(None) };
        let failed = |source| CacheError::Io { path: path.clone(), source };
        if !is_this_users(&file.metadata().map_err(failed)?, 0o077) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        (&file).take(KEY_SIZE as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        Ok(<[u8; KEY_SIZE]>::try_from(bytes).ok().map(MacKey))
    }

    /// Makes a key, in place of an unusable one if there is one. Returns the key of another Main if that was faster.
    fn make_key(&self) -> Result<MacKey, CacheError> {
        let path = self.dir.join(KEY_FILE);
        let failed = |source| CacheError::Io { path: path.clone(), source };
        let bytes = random().map_err(failed)?;
        let mut file = self.temporary()?;
        file.write_all(&bytes).map_err(failed)?;
        let Err(error) = file.persist_noclobber(&path) else { return Ok(MacKey(bytes)) };
        if let Some(key) = self.key()? {
            // Another Main has made this key in the meantime.
            return Ok(key);
        }
        error.file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(MacKey(bytes))
    }

    /// Makes a file of mode 600, which is removed unless it is persisted.
    fn temporary(&self) -> Result<tempfile::NamedTempFile, CacheError> {
        tempfile::Builder::new()
            .prefix(PREFIXES[0])
            .tempfile_in(&self.dir)
            .map_err(|source| CacheError::Io { path: self.dir.clone(), source })
    }

    /// Whether there is an entry of this component for any engine. Asked only when the entry itself is missing.
    fn has_of_another_engine(&self, id: EntryId) -> bool {
        let prefix = id.of_any_engine();
        fs::read_dir(&self.dir)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)))
    }

    /// Removes the least recently used entries until all but `kept` have at most `size` bytes together. Files that are
    /// being written count as entries, because a Main that was killed may have left them. Other files stay.
    fn make_room(&self, kept: &str, size: u64) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
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
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in entries {
            if total <= size {
                break;
            }
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => total = total.saturating_sub(bytes),
            }
        }
        Ok(())
    }
}

/// Opens a file, if there is one. Does not follow a symlink at the end of the path, and never waits for a FIFO.
fn open(path: &Path) -> Result<Option<fs::File>, CacheError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file.into())),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(CacheError::Io { path: path.to_owned(), source: error.into() }),
    }
}

/// Whether a file or directory is this user's and gives none of these rights to others.
fn is_this_users(metadata: &fs::Metadata, rights: u32) -> bool {
    metadata.uid() == geteuid().as_raw() && metadata.mode() & rights == 0
}

/// The key of this device, which makes the MACs.
struct MacKey([u8; KEY_SIZE]);

impl MacKey {
    fn mac(&self, id: EntryId, code: &[u8]) -> HmacSha256 {
        HmacSha256::new(&self.0.into())
            .chain_update(DOMAIN)
            .chain_update(id.component.as_bytes())
            .chain_update(id.engine.as_bytes())
            .chain_update(code)
    }
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

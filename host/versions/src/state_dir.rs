//! `main.state-dir`: records of versions, each under a MAC, and the components of versions that may run again.
//!
//! Each file is written beside its place, flushed to the disk and then renamed, so that a power cut at any step leaves
//! the old file or the new one.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use weir_config::{ArtifactHash, FileLock, bytes as shown};
use weir_names::ExtensionId;
use weir_private_dir::{DirError, Mac, MacKey, PrivateDir};

use crate::{fault_point, record::Record};

/// The version of the format of a record.
const FORMAT: u32 = 1;

/// The first line of a record begins with this, the format and a space. The MAC and the end of the line follow.
const MAGIC: &str = "weir versions ";

const KEY_FILE: &str = "weir-state.key";
const TEMPORARY: &str = ".weir-state-";
const RECORD: &str = "weir-versions-";
const COMPONENT: &str = "weir-component-";

/// The largest record that is read. The sixteen stanzas of a record are much smaller.
const RECORD_MAX: u64 = 16 << 20;

#[derive(Debug)]
pub(crate) struct StateDir {
    dir: PrivateDir,
    /// The most bytes of all components.
    size: u64,
    /// Another Main with the same directory would write records that this one does not know.
    _lock: FileLock,
}

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error("`{}` {source}", path.display())]
    InUse { path: PathBuf, source: std::io::Error },
    #[error("`{}` was changed, or written by somebody else", .0.display())]
    NotAuthentic(PathBuf),
    #[error("`{}` has format {format}, and this Weir reads formats up to {FORMAT}: a newer Weir wrote it", path.display())]
    Newer { path: PathBuf, format: u32 },
    #[error("the components that must be kept take {}, and `main.state-size` is {}", shown(*.bytes), shown(*.allowed))]
    Full { bytes: u64, allowed: u64 },
    #[error("its component cannot be kept: {0}")]
    NotCopied(String),
}

impl StateDir {
    /// Opens the directory, and makes it if need be. Removes what a Main that was killed left half written.
    pub(crate) fn open(path: PathBuf, size: u64) -> Result<Self, StateError> {
        let dir = PrivateDir::new(path, TEMPORARY);
        dir.make()?;
        let lock = fs::File::open(dir.path()).map_err(DirError::io(dir.path()))?;
        let in_use = |source| StateError::InUse { path: dir.path().to_owned(), source };
        let lock = FileLock::take(lock).map_err(in_use)?;
        let state = Self { dir, size, _lock: lock };
        for name in state.names(TEMPORARY)? {
            // Fails where nothing can be written, and then it does not matter.
            let _left = fs::remove_file(state.dir.path().join(format!("{TEMPORARY}{name}")));
        }
        Ok(state)
    }

    /// Reads all records, each with its error if it cannot be used.
    pub(crate) fn records(&self) -> Result<BTreeMap<ExtensionId, Result<Record, StateError>>, StateError> {
        let names = self.names(RECORD)?;
        let ids = names.iter().filter_map(|name| name.parse::<ExtensionId>().ok());
        Ok(ids.map(|id| (id.clone(), self.record(&id))).collect())
    }

    fn record(&self, id: &ExtensionId) -> Result<Record, StateError> {
        record_in(&self.dir, id)
    }

    /// Writes the record of an extension.
    pub(crate) fn write(&self, id: &ExtensionId, record: &Record) -> Result<(), StateError> {
        let path = self.dir.path().join(format!("{RECORD}{id}"));
        let mut body = serde_json::to_string(record).map_err(|error| DirError::io(&path)(error.into()))?;
        body.push('\n');
        let mac = mac_of(&self.dir.key_or_new(KEY_FILE)?, id, &body).finalize().into_bytes();
        let text = format!("{MAGIC}{FORMAT} {}\n{body}", hex::encode(mac));
        fault_point();
        self.persist(&path, |file| {
            file.write_all(text.as_bytes()).map_err(|error| DirError::io(&path)(error).into())
        })?;
        fault_point();
        Ok(())
    }

    /// Removes the record of an extension.
    pub(crate) fn remove(&self, id: &ExtensionId) -> Result<(), StateError> {
        let path = self.dir.path().join(format!("{RECORD}{id}"));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DirError::io(&path)(error).into()),
            _ => Ok(()),
        }
    }

    /// The path of a kept component.
    pub(crate) fn component(&self, hash: ArtifactHash) -> PathBuf {
        self.dir.path().join(format!("{COMPONENT}{hash}"))
    }

    /// Keeps a component that `copy` writes, unless it is kept already. `make_room` gives up others until they have so
    /// many bytes, and returns how many they have.
    pub(crate) fn keep(
        &self,
        hash: ArtifactHash,
        copy: impl FnOnce(&mut dyn Write) -> Result<(), String>,
        make_room: impl FnOnce(u64) -> Result<u64, StateError>,
    ) -> Result<(), StateError> {
        let path = self.component(hash);
        if path.is_file() {
            return Ok(());
        }
        fault_point();
        self.persist(&path, |file| {
            copy(file).map_err(StateError::NotCopied)?;
            let bytes = file.metadata().map_err(DirError::io(&path))?.len();
            let others = self.sizes()?.values().sum();
            let others = match self.size.checked_sub(bytes) {
                Some(room) if others > room => make_room(room)?,
                _ => others,
            };
            let bytes = others.saturating_add(bytes);
            (bytes <= self.size).then_some(()).ok_or(StateError::Full { bytes, allowed: self.size })
        })?;
        fault_point();
        Ok(())
    }

    /// The sizes of the kept components, in bytes.
    pub(crate) fn sizes(&self) -> Result<BTreeMap<ArtifactHash, u64>, StateError> {
        let mut sizes = BTreeMap::new();
        for name in self.names(COMPONENT)? {
            let Ok(hash) = name.parse::<ArtifactHash>() else { continue };
            let bytes = fs::metadata(self.component(hash)).map_or(0, |metadata| metadata.len());
            sizes.insert(hash, bytes);
        }
        Ok(sizes)
    }

    /// Removes the components that are not needed.
    pub(crate) fn sweep(&self, needed: &BTreeSet<ArtifactHash>) -> Result<(), StateError> {
        for hash in self.sizes()?.into_keys().filter(|hash| !needed.contains(hash)) {
            let path = self.component(hash);
            // It takes room, and that is all: no decision waits for it.
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!("`{}` is not needed, and cannot be removed: {error}", path.display());
            }
            fault_point();
        }
        Ok(())
    }

    /// What follows `prefix` in the names of files that begin with it.
    fn names(&self, prefix: &str) -> Result<Vec<String>, DirError> {
        let entries = fs::read_dir(self.dir.path()).map_err(DirError::io(self.dir.path()))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.strip_prefix(prefix).map(ToOwned::to_owned)).collect())
    }

    /// Writes a file beside its place, and puts it there once it is on the disk.
    fn persist(
        &self,
        path: &Path,
        write: impl FnOnce(&mut fs::File) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let mut file = self.dir.temporary()?;
        write(file.as_file_mut())?;
        fault_point();
        file.as_file().sync_all().map_err(DirError::io(path))?;
        fault_point();
        file.persist(path).map_err(|error| DirError::io(path)(error.error))?;
        fault_point();
        let dir = fs::File::open(self.dir.path()).and_then(|dir| dir.sync_all());
        Ok(dir.map_err(DirError::io(self.dir.path()))?)
    }
}

/// Reads the record of an extension in this directory, if there is one that this user's Main can use. Takes no lock and
/// writes nothing: a Main with the same directory exchanges a record as a whole.
pub(crate) fn look_at_record(path: &Path, id: &ExtensionId) -> Option<Record> {
    let dir = PrivateDir::new(path.to_owned(), TEMPORARY);
    record_in(&dir, id).ok().filter(|_| dir.is_there().is_ok())
}

/// Reads the record of an extension as [`look_at_record`] does. Returns none if there is none.
pub(crate) fn read_record(path: &Path, id: &ExtensionId) -> Result<Option<Record>, StateError> {
    let dir = PrivateDir::new(path.to_owned(), TEMPORARY);
    let is_there = dir.is_there()? && dir.open(format!("{RECORD}{id}"))?.is_some();
    is_there.then(|| record_in(&dir, id)).transpose()
}

fn record_in(dir: &PrivateDir, id: &ExtensionId) -> Result<Record, StateError> {
    let name = format!("{RECORD}{id}");
    let path = dir.path().join(&name);
    let foreign = || StateError::NotAuthentic(path.clone());
    let mut text = Vec::new();
    let file = dir.open(&name)?.ok_or_else(foreign)?;
    file.take(RECORD_MAX).read_to_end(&mut text).map_err(DirError::io(&path))?;
    let text = String::from_utf8(text).map_err(|_| foreign())?;
    let (first, body) = text.split_once('\n').ok_or_else(foreign)?;
    let (format, mac) =
        first.strip_prefix(MAGIC).and_then(|rest| rest.split_once(' ')).ok_or_else(foreign)?;
    let format = format.parse().map_err(|_| foreign())?;
    match format {
        FORMAT => {}
        _ if format > FORMAT => return Err(StateError::Newer { path, format }),
        _ => return Err(foreign()),
    }
    let key = dir.key(KEY_FILE)?.ok_or_else(foreign)?;
    let mac = hex::decode(mac).map_err(|_| foreign())?;
    mac_of(&key, id, body).verify_slice(&mac).map_err(|_| foreign())?;
    serde_json::from_str(body).map_err(|_| foreign())
}

/// The MAC is over the format, the extension and the rest, so that no record can take the place of another.
fn mac_of(key: &MacKey, id: &ExtensionId, body: &str) -> impl Mac + use<> {
    key.mac().chain_update(format!("{MAGIC}{FORMAT}\n{id}\n")).chain_update(body)
}

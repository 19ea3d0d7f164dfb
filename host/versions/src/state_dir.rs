//! `main.state-dir`: records of versions, each under a MAC, the components of versions that may run again, and data of
//! extensions from before its form changed.
//!
//! Each file is written beside its place, flushed to the disk and then renamed, so that a power cut at any step leaves
//! the old file or the new one.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use weir_config::{ArtifactHash, FileLock, bytes as shown};
use weir_names::ExtensionId;
use weir_private_dir::{DirError, Mac, MacKey, PrivateDir};

use crate::{fault_point, record::Record};

/// The version of the format of a record.
const FORMAT: u32 = 2;

/// The oldest format that is read. It knows nothing of data.
const OLDEST: u32 = 1;

/// The first line of a record begins with this, the format and a space. The MAC and the end of the line follow.
const MAGIC: &str = "weir versions ";

const KEY_FILE: &str = "weir-state.key";
const TEMPORARY: &str = ".weir-state-";
const RECORD: &str = "weir-versions-";
const COMPONENT: &str = "weir-component-";
const DATA: &str = "weir-data-";

/// The name of a file that tells that versions have run which a record does not know. The id of the extension follows. It
/// is a record without versions.
const UNKNOWN_RAN: &str = "weir-unknown-ran-";

/// The largest record that is read. The sixteen stanzas of a record are much smaller.
const RECORD_MAX: u64 = 16 << 20;

#[derive(Debug)]
pub(crate) struct StateDir {
    dir: PrivateDir,
    /// The most bytes of all components and data.
    size: u64,
    /// Another Main with the same directory would write records that this one does not know.
    _lock: FileLock,
}

/// A file that is kept for a version, beside the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kept {
    Component(ArtifactHash),
    Data(ArtifactHash),
}

/// Data of an extension that is written, and not in its place yet.
#[derive(Debug)]
pub(crate) struct WrittenData {
    pub(crate) hash: ArtifactHash,
    pub(crate) bytes: u64,
    file: NamedTempFile,
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
    #[error("what must be kept takes {}, and `main.state-size` is {}", shown(*.bytes), shown(*.allowed))]
    Full { bytes: u64, allowed: u64 },
    #[error("its component cannot be kept: {0}")]
    NotCopied(String),
    #[error("{0}")]
    NoData(String),
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

    /// Whether there is a record of an extension, which may be damaged, or it is not known.
    pub(crate) fn has_record(&self, id: &ExtensionId) -> bool {
        self.dir.path().join(format!("{RECORD}{id}")).try_exists().unwrap_or(true)
    }

    /// Reads the record of an extension.
    pub(crate) fn record(&self, id: &ExtensionId) -> Result<Record, StateError> {
        record_in(&self.dir, id)
    }

    /// Writes the record of an extension.
    pub(crate) fn write(&self, id: &ExtensionId, record: &Record) -> Result<(), StateError> {
        self.write_as(&format!("{RECORD}{id}"), record)
    }

    fn write_as(&self, name: &str, record: &Record) -> Result<(), StateError> {
        let path = self.dir.path().join(name);
        let mut body = serde_json::to_string(record).map_err(|error| DirError::io(&path)(error.into()))?;
        body.push('\n');
        let mac = mac_of(&self.dir.key_or_new(KEY_FILE)?, FORMAT, name, &body).finalize().into_bytes();
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
        self.path(Kept::Component(hash))
    }

    fn path(&self, kept: Kept) -> PathBuf {
        self.dir.path().join(match kept {
            Kept::Component(hash) => format!("{COMPONENT}{hash}"),
            Kept::Data(hash) => format!("{DATA}{hash}"),
        })
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
            self.fit(bytes, make_room)
        })?;
        fault_point();
        Ok(())
    }

    /// Makes room for so many bytes more.
    fn fit(
        &self,
        bytes: u64,
        make_room: impl FnOnce(u64) -> Result<u64, StateError>,
    ) -> Result<(), StateError> {
        let others = self.sizes()?.values().sum();
        let others = match self.size.checked_sub(bytes) {
            Some(room) if others > room => make_room(room)?,
            _ => others,
        };
        let bytes = others.saturating_add(bytes);
        (bytes <= self.size).then_some(()).ok_or(StateError::Full { bytes, allowed: self.size })
    }

    /// Writes what `copy` writes beside its place, and flushes it to the disk. Ends as soon as it has more bytes than the
    /// directory may have beside the `others`, which stay.
    pub(crate) fn write_data(
        &self,
        others: u64,
        copy: impl FnOnce(&mut dyn Write) -> Result<(), String>,
    ) -> Result<WrittenData, StateError> {
        let file = self.dir.temporary()?;
        fault_point();
        let mut to = Hashing::new(BufWriter::new(file.as_file()), self.size.saturating_sub(others));
        let copied = copy(&mut to);
        if to.is_over() {
            return Err(StateError::Full { bytes: to.bytes.saturating_add(others), allowed: self.size });
        }
        copied.map_err(StateError::NoData)?;
        let flushed = to.inner.flush().and_then(|()| file.as_file().sync_all());
        let (hash, bytes) = (to.hash(), to.bytes);
        drop(to);
        flushed.map_err(DirError::io(file.path()))?;
        fault_point();
        Ok(WrittenData { hash, bytes, file })
    }

    /// Puts data in its place. `make_room` is that of [`keep`](Self::keep).
    pub(crate) fn place_data(
        &self,
        WrittenData { hash, bytes, file }: WrittenData,
        make_room: impl FnOnce(u64) -> Result<u64, StateError>,
    ) -> Result<(), StateError> {
        // The same data is kept once, and written anew: the old file may be damaged.
        let path = self.path(Kept::Data(hash));
        if !path.is_file() {
            self.fit(bytes, make_room)?;
        }
        self.place(file, &path)?;
        fault_point();
        Ok(())
    }

    /// Opens kept data, from its begin. None if it is not there, or is not what was written.
    pub(crate) fn open_data(&self, hash: ArtifactHash) -> Result<Option<fs::File>, StateError> {
        let path = self.path(Kept::Data(hash));
        let Some(mut file) = self.dir.open(format!("{DATA}{hash}"))? else { return Ok(None) };
        if !file.metadata().map_err(DirError::io(&path))?.is_file() {
            return Ok(None);
        }
        let mut found = Hashing::new(io::sink(), u64::MAX);
        io::copy(&mut file, &mut found).map_err(DirError::io(&path))?;
        file.rewind().map_err(DirError::io(&path))?;
        Ok((found.hash() == hash).then_some(file))
    }

    /// Notes that versions of an extension run which its record does not know, and what is known of the data since.
    pub(crate) fn mark(&self, id: &ExtensionId, unknown: &Record) -> Result<(), StateError> {
        self.write_as(&format!("{UNKNOWN_RAN}{id}"), unknown)
    }

    /// Reads what [`mark`](Self::mark) has written. None if there is nothing, or it was written by somebody else.
    pub(crate) fn mark_of(&self, id: &ExtensionId) -> Result<Option<Record>, StateError> {
        match read_as(&self.dir, &format!("{UNKNOWN_RAN}{id}")) {
            Ok(record) => Ok(Some(record)),
            Err(StateError::NotAuthentic(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The extensions of which versions have run that their records do not know.
    pub(crate) fn marked(&self) -> Result<Vec<ExtensionId>, StateError> {
        Ok(self.names(UNKNOWN_RAN)?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Takes back [`mark`](Self::mark).
    pub(crate) fn unmark(&self, id: &ExtensionId) -> Result<(), StateError> {
        let path = self.dir.path().join(format!("{UNKNOWN_RAN}{id}"));
        Ok(fs::remove_file(&path).map_err(DirError::io(&path))?)
    }

    /// The sizes of what is kept beside the records, in bytes.
    pub(crate) fn sizes(&self) -> Result<BTreeMap<Kept, u64>, StateError> {
        let mut sizes = BTreeMap::new();
        let hashes = |prefix| {
            let names = self.names(prefix)?.into_iter();
            Ok::<_, StateError>(names.filter_map(|name| name.parse::<ArtifactHash>().ok()))
        };
        for kept in hashes(COMPONENT)?.map(Kept::Component).chain(hashes(DATA)?.map(Kept::Data)) {
            let bytes = fs::metadata(self.path(kept)).map_or(0, |metadata| metadata.len());
            sizes.insert(kept, bytes);
        }
        Ok(sizes)
    }

    /// Removes what is kept and not needed.
    pub(crate) fn sweep(&self, needed: &BTreeSet<Kept>) -> Result<(), StateError> {
        for kept in self.sizes()?.into_keys().filter(|kept| !needed.contains(kept)) {
            let path = self.path(kept);
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
        self.place(file, path)
    }

    /// Puts a file in its place once it is on the disk.
    fn place(&self, file: NamedTempFile, path: &Path) -> Result<(), StateError> {
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
    read_as(dir, &format!("{RECORD}{id}"))
}

fn read_as(dir: &PrivateDir, name: &str) -> Result<Record, StateError> {
    let path = dir.path().join(name);
    let foreign = || StateError::NotAuthentic(path.clone());
    let mut text = Vec::new();
    let file = dir.open(name)?.ok_or_else(foreign)?;
    file.take(RECORD_MAX).read_to_end(&mut text).map_err(DirError::io(&path))?;
    let text = String::from_utf8(text).map_err(|_| foreign())?;
    let (first, body) = text.split_once('\n').ok_or_else(foreign)?;
    let (format, mac) =
        first.strip_prefix(MAGIC).and_then(|rest| rest.split_once(' ')).ok_or_else(foreign)?;
    let format = format.parse().map_err(|_| foreign())?;
    match format {
        OLDEST..=FORMAT => {}
        _ if format > FORMAT => return Err(StateError::Newer { path, format }),
        _ => return Err(foreign()),
    }
    let key = dir.key(KEY_FILE)?.ok_or_else(foreign)?;
    let mac = hex::decode(mac).map_err(|_| foreign())?;
    mac_of(&key, format, name, body).verify_slice(&mac).map_err(|_| foreign())?;
    serde_json::from_str(body).map_err(|_| foreign())
}

/// The MAC is over the format, the extension and the rest, so that no record can take the place of another. What is no
/// record has its name in place of the id, with a space, which no id has.
fn mac_of(key: &MacKey, format: u32, name: &str, body: &str) -> impl Mac + use<> {
    let of = name.strip_prefix(RECORD).map_or_else(|| format!("file {name}"), ToOwned::to_owned);
    key.mac().chain_update(format!("{MAGIC}{format}\n{of}\n")).chain_update(body)
}

/// A record as a Weir of format 1 has written it.
#[cfg(test)]
pub(crate) fn text_of_format_1(dir: &Path, id: &ExtensionId, body: &serde_json::Value) -> String {
    let key = PrivateDir::new(dir.to_owned(), TEMPORARY).key(KEY_FILE).unwrap().unwrap();
    let body = format!("{body}\n");
    let mac = hex::encode(mac_of(&key, 1, &format!("{RECORD}{id}"), &body).finalize().into_bytes());
    format!("{MAGIC}1 {mac}\n{body}")
}

/// Writes and hashes, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct Hashing<W> {
    inner: W,
    found: Sha256,
    bytes: u64,
    most: u64,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W, most: u64) -> Self {
        Self { inner, found: Sha256::new(), bytes: 0, most }
    }

    /// The SHA-256 of what was written so far.
    pub(crate) fn hash(&self) -> ArtifactHash {
        ArtifactHash::from_bytes(self.found.clone().finalize().into())
    }

    fn is_over(&self) -> bool {
        self.bytes > self.most
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(buffer.len() as u64);
        if self.is_over() {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.inner.write_all(buffer)?;
        self.found.update(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

//! The lock beside the operator's file: the components that run, by their hashes, and those that may come back.
//!
//! The text is made by Weir, and is TOML. Its second line is the hash of all lines after it, so that every damaged bit
//! shows. It is no signature: whoever may write the file, or its directory, can make another lock, and Main does not look at
//! its permissions.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{File, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{self, Path, PathBuf},
};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use weir_names::ExtensionId;

use super::{
    component::ArtifactHash,
    loader::{ReadError, open_file, read_text},
    stanza::quoted,
};

/// The version of the format.
const FORMAT: &str = "1";

/// How the first line begins.
const FIRST: &str = "# A lock of Weir, made by `weir lock`. Format ";

/// How the second line begins and ends.
const CHECKSUM: [&str; 2] = ["checksum = \"", "\""];

/// The most bytes of a lock: enough for 20,000 extensions with five hashes each.
const MAX_BYTES: u64 = 16 << 20;

/// The components that may run, and no others, where Main runs with a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentLock {
    /// The extensions.
    pub extensions: BTreeMap<ExtensionId, LockedExtension>,
    /// The hooks, by the paths of their files, relative to the lock's directory.
    pub hooks: BTreeMap<String, ArtifactHash>,
    /// The directory of the lock. Paths of hooks are compared with it in front, so that it may be another one later.
    dir: PathBuf,
}

/// The components of one extension that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockedExtension {
    /// The version of the component, if it is known.
    pub version: Option<String>,
    /// Where the component came from, as it was given to `weir add`.
    pub source: Option<String>,
    /// The SHA-256 of the component or artifact that runs.
    pub sha256: ArtifactHash,
    /// The SHA-256 of each earlier one that may come back.
    pub falls_back_to: Vec<ArtifactHash>,
}

/// Why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the lock `{}` {fault}", path.display())]
pub struct ComponentLockError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: ComponentLockFault,
}

/// What is wrong with a lock, as the rest of a sentence that begins with its file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComponentLockFault {
    /// There is no such file.
    #[error("is missing: make it with `weir lock`")]
    Missing,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(String),
    /// The lock is in another format.
    #[error("has format {0}, and this version of Weir reads format {FORMAT}: make it again with `weir lock`")]
    OtherFormat(String),
    /// The text is not what Weir wrote.
    #[error("is damaged, or was changed by hand: compare it with a copy, or make it again with `weir lock`")]
    Damaged,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(default)]
    extension: Vec<ExtensionRow>,
    #[serde(default)]
    hook: Vec<HookRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ExtensionRow {
    id: ExtensionId,
    version: Option<String>,
    source: Option<String>,
    sha256: String,
    falls_back_to: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HookRow {
    path: String,
    sha256: String,
}

impl ComponentLock {
    /// An empty lock for this file.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let dir = path.parent().unwrap_or(&path).to_owned();
        Self { dir, ..Self::default() }
    }

    /// The lock of the configuration in this file, which is beside it: `weir.lock` for `weir.toml`, and
    /// `site.conf.lock` for `site.conf`.
    #[must_use]
    pub fn path_of(config: &Path) -> PathBuf {
        if config.extension().is_some_and(|extension| extension == "toml") {
            return config.with_extension("lock");
        }
        let mut path = OsString::from(config);
        path.push(".lock");
        path.into()
    }

    /// Reads the lock in a file.
    ///
    /// # Errors
    ///
    /// Fails if the file is missing, cannot be read, or is not in every byte as Weir wrote it.
    pub fn read(path: &Path) -> Result<Self, ComponentLockError> {
        let read = || match read_text(path, MAX_BYTES) {
            Ok(text) => Ok(Self { dir: Self::at(path).dir, ..Self::parse(text.as_bytes())? }),
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                Err(ComponentLockFault::Missing)
            }
            Err(ReadError::NotUtf8) => Err(ComponentLockFault::Damaged),
            Err(error) => Err(ComponentLockFault::Read(error.to_string())),
        };
        read().map_err(|fault| ComponentLockError { path: path.to_owned(), fault })
    }

    /// Writes the lock to a file, whole or not at all. A lock that was there before gives its mode, and its owner if this
    /// user may give files away.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or is there and is no lock. What was there is still there then.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let before = match open_file(path) {
            Ok(file) => Some(file),
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(ReadError::Io(error)) => return Err(error),
            Err(error) => return Err(io::Error::other(error)),
        };
        // The mode of the process takes its part of this.
        let mode = Permissions::from_mode(0o666);
        let mut new = tempfile::Builder::new().prefix(".weir-lock-").permissions(mode).tempfile_in(dir)?;
        if let Some(before) = before {
            let metadata = before.metadata()?;
            let mut first = Vec::new();
            before.take(FIRST.len() as u64).read_to_end(&mut first)?;
            if first != FIRST.as_bytes() {
                return Err(io::Error::other("it is there, and is no lock: move it away"));
            }
            // Fails for a file of somebody else, unless this user is root: then it becomes this user's.
            drop(fchown(&new, Some(metadata.uid()), Some(metadata.gid())));
            new.as_file().set_permissions(metadata.permissions())?;
        }
        new.write_all(self.text().as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(path)?;
        File::open(dir)?.sync_all()
    }

    /// Reads the text of a lock.
    ///
    /// # Errors
    ///
    /// Fails if the text is not in every byte as [`text`](Self::text) makes it.
    pub fn parse(text: &[u8]) -> Result<Self, ComponentLockFault> {
        let damaged = || ComponentLockFault::Damaged;
        let text = str::from_utf8(text).map_err(|_| damaged())?;
        let (first, rest) = text.split_once('\n').ok_or_else(damaged)?;
        let format = first.strip_prefix(FIRST).ok_or_else(damaged)?;
        if format != FORMAT {
            let is_number = !format.is_empty() && format.bytes().all(|byte| byte.is_ascii_digit());
            let format = format.chars().take(16).collect();
            return Err(if is_number { ComponentLockFault::OtherFormat(format) } else { damaged() });
        }
        let (checksum, rows) = rest.split_once('\n').ok_or_else(damaged)?;
        if checksum != checksum_of(rows) {
            return Err(damaged());
        }
        let Rows { extension, hook } = toml::from_str(rows).map_err(|_| damaged())?;
        let hash = |text: String| text.parse::<ArtifactHash>().map_err(|_| damaged());
        let mut lock = Self::default();
        for ExtensionRow { id, version, source, sha256, falls_back_to } in extension {
            let falls_back_to = falls_back_to.into_iter().map(hash).collect::<Result<_, _>>()?;
            let locked = LockedExtension { version, source, sha256: hash(sha256)?, falls_back_to };
            lock.extensions.insert(id, locked);
        }
        for HookRow { path, sha256 } in hook {
            lock.hooks.insert(path, hash(sha256)?);
        }
        // Repeated rows, and anything else that Weir does not write.
        if lock.text() == text { Ok(lock) } else { Err(damaged()) }
    }

    /// The text of the lock, as it is in the file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut rows = String::new();
        let mut row = |line: String| {
            rows.push_str(&line);
            rows.push('\n');
        };
        for (id, LockedExtension { version, source, sha256, falls_back_to }) in &self.extensions {
            row(String::new());
            row("[[extension]]".to_owned());
            row(format!("id = {}", quoted(id.as_str())));
            for (key, value) in [("version", version), ("source", source)] {
                value.iter().for_each(|value| row(format!("{key} = {}", quoted(value))));
            }
            row(format!("sha256 = \"{sha256}\""));
            let hashes: Vec<_> = falls_back_to.iter().map(|hash| format!("\"{hash}\"")).collect();
            row(format!("falls-back-to = [{}]", hashes.join(", ")));
        }
        for (path, sha256) in &self.hooks {
            row(String::new());
            row("[[hook]]".to_owned());
            row(format!("path = {}", quoted(path)));
            row(format!("sha256 = \"{sha256}\""));
        }
        format!("{FIRST}{FORMAT}\n{}\n{rows}", checksum_of(&rows))
    }

    /// Whether this component may run as the extension with this id.
    #[must_use]
    pub fn allows(&self, id: &ExtensionId, sha256: ArtifactHash) -> bool {
        self.extensions
            .get(id)
            .is_some_and(|locked| locked.sha256 == sha256 || locked.falls_back_to.contains(&sha256))
    }

    /// Whether this component may run as the hook in this file.
    #[must_use]
    pub fn allows_hook(&self, path: &Path, sha256: ArtifactHash) -> bool {
        self.hook(path).and_then(|path| self.hooks.get(path)).is_some_and(|locked| *locked == sha256)
    }

    /// How the lock names the hook in this file: by its path relative to the lock's directory, or by its whole path if it
    /// is elsewhere. Returns none for a path that is not UTF-8.
    #[must_use]
    pub fn hook<'path>(&self, path: &'path Path) -> Option<&'path str> {
        path.strip_prefix(&self.dir).unwrap_or(path).to_str()
    }
}

impl LockedExtension {
    /// An extension that may run this component and no other one.
    #[must_use]
    pub fn new(sha256: ArtifactHash) -> Self {
        Self { version: None, source: None, sha256, falls_back_to: Vec::new() }
    }
}

/// The second line.
fn checksum_of(rows: &str) -> String {
    let hash = ArtifactHash::from_bytes(Sha256::digest(rows).into());
    let [before, after] = CHECKSUM;
    format!("{before}{hash}{after}")
}

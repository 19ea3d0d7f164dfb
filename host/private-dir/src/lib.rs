//! Directories that belong to Main alone, and keys for the MACs of files in them.
//!
//! A directory counts as Main's own if this user owns it and nobody else can write to it. Its key never leaves it, so a
//! file with a MAC of that key was written by a Main of this device.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

pub use hmac::Mac;
use hmac::{Hmac, KeyInit};
use rustix::{
    fs::{Mode, OFlags},
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};
use sha2::Sha256;
use tempfile::NamedTempFile;

/// The size of a block of SHA-256. HMAC (RFC 2104) uses a key of this size as it is.
const KEY_SIZE: usize = 64;

/// A directory of this user, which nobody else can write to.
#[derive(Clone, Debug)]
pub struct PrivateDir {
    path: PathBuf,
    /// What the names of files that are being written begin with.
    temporary: &'static str,
}

/// Why a directory, or a file in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// Reading or writing failed.
    #[error("`{}` cannot be used", path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// It belongs to somebody else too.
    #[error("`{}` must be a directory that this user owns and nobody else can write to", .0.display())]
    NotOurs(PathBuf),
}

impl DirError {
    /// Makes an error of reading or writing this path.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

impl PrivateDir {
    /// Names a directory, which need not be there. Names of files that are being written begin with `temporary`.
    #[must_use]
    pub fn new(path: PathBuf, temporary: &'static str) -> Self {
        Self { path, temporary }
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the directory is there.
    ///
    /// # Errors
    ///
    /// Fails if it is no directory, is not this user's, can be written to by others, or cannot be looked at.
    pub fn is_there(&self) -> Result<bool, DirError> {
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(DirError::io(&self.path)(error)),
        };
        let ours = metadata.is_dir() && is_this_users(&metadata, 0o022);
        if ours { Ok(true) } else { Err(DirError::NotOurs(self.path.clone())) }
    }

    /// Makes the directory with mode 700, unless it is there.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made, or is there and [not Main's own](Self::is_there).
    pub fn make(&self) -> Result<(), DirError> {
        if !self.is_there()? {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
            made.map_err(DirError::io(&self.path))?;
            self.is_there()?;
        }
        Ok(())
    }

    /// Opens a file to read it, if there is one. Does not follow a symlink, and never waits for a FIFO.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened.
    pub fn open(&self, name: impl AsRef<Path>) -> Result<Option<fs::File>, DirError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file.into())),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(DirError::io(&path)(error.into())),
        }
    }

    /// Makes a file of mode 600, which is removed unless it is persisted.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made.
    pub fn temporary(&self) -> Result<NamedTempFile, DirError> {
        tempfile::Builder::new()
            .prefix(self.temporary)
            .tempfile_in(&self.path)
            .map_err(DirError::io(&self.path))
    }

    /// Reads the key in this file. Returns none if there is no key, it is not this user's, others have any rights to
    /// it, or it has another size.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn key(&self, name: &str) -> Result<Option<MacKey>, DirError> {
        let Some(file) = self.open(name)? else { return Ok(None) };
        let path = self.path.join(name);
        if !is_this_users(&file.metadata().map_err(DirError::io(&path))?, 0o077) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        (&file).take(KEY_SIZE as u64 + 1).read_to_end(&mut bytes).map_err(DirError::io(&path))?;
        Ok(<[u8; KEY_SIZE]>::try_from(bytes).ok().map(MacKey))
    }

    /// Reads the key in this file, or makes one in place of a missing or unusable one. Returns the key of another Main
    /// if that was faster.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or written.
    pub fn key_or_new(&self, name: &str) -> Result<MacKey, DirError> {
        if let Some(key) = self.key(name)? {
            return Ok(key);
        }
        let path = self.path.join(name);
        let bytes = random().map_err(DirError::io(&path))?;
        let mut file = self.temporary()?;
        file.write_all(&bytes).and_then(|()| file.as_file().sync_all()).map_err(DirError::io(&path))?;
        let Err(error) = file.persist_noclobber(&path) else { return Ok(MacKey(bytes)) };
        if let Some(key) = self.key(name)? {
            // Another Main has made this key in the meantime.
            return Ok(key);
        }
        error.file.persist(&path).map_err(|error| DirError::io(&path)(error.error))?;
        Ok(MacKey(bytes))
    }
}

/// Whether a file or directory is this user's and gives none of these rights to others.
fn is_this_users(metadata: &fs::Metadata, rights: u32) -> bool {
    metadata.uid() == geteuid().as_raw() && metadata.mode() & rights == 0
}

/// Returns random bytes of the kernel that are fit for keys.
///
/// # Errors
///
/// Fails if the kernel has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let given = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if given < N {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// A key of this device, which makes MACs.
pub struct MacKey([u8; KEY_SIZE]);

impl MacKey {
    /// Begins a MAC (HMAC-SHA-256, RFC 2104) of this key.
    #[must_use]
    pub fn mac(&self) -> Hmac<Sha256> {
        Hmac::new(&self.0.into())
    }
}

impl fmt::Debug for MacKey {
    /// Writes nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey")
    }
}

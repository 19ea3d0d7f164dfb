//! A lock on the configuration: no two Mains run from the same file, whatever their sockets.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::Context;
use weir_host::config::FileLock;

pub(super) struct OwnFile {
    path: PathBuf,
    lock: FileLock,
}

impl OwnFile {
    pub(super) fn lock(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot lock `{}`", path.display()))?;
        let lock =
            FileLock::take(file).with_context(|| format!("another Main runs by `{}`", path.display()))?;
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Locks the current file after a reload. An editor may have replaced it.
    pub(super) fn lock_again(&mut self) {
        let Ok(file) = File::open(&self.path) else { return };
        if self.lock.is_of(&file) {
            return;
        }
        match FileLock::take(file) {
            Ok(lock) => self.lock = lock,
            Err(error) => tracing::warn!("another Main runs by `{}`: {error}", self.path.display()),
        }
    }
}

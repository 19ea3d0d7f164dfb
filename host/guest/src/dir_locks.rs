//! Locks on the directories that extensions of this Main may write to. They keep out the extensions of every other
//! Main.

use std::{collections::HashMap, fs::File, io, path::Path, sync::Arc};

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use weir_config::{DirGrant, DirMode, FileLock};

use crate::quota::{Inode, inode};

/// The directories locked by this Main, each with its number of users.
#[derive(Debug, Default)]
pub(super) struct DirLocks(Mutex<HashMap<Inode, (FileLock, usize)>>);

/// One use of a locked directory. The directory is unlocked when the last use is dropped.
#[derive(Debug)]
pub(super) struct DirLock {
    locks: Arc<DirLocks>,
    inode: Inode,
}

impl DirLocks {
    pub(super) fn take_written(self: &Arc<Self>, dirs: &[DirGrant]) -> wasmtime::Result<Vec<DirLock>> {
        let mut locks = Vec::new();
        for dir in dirs.iter().filter(|dir| dir.mode == DirMode::Rw) {
            let lock = self.take(&dir.host).map_err(|error| {
                let what = format!("cannot lock granted directory `{}`", dir.host.display());
                wasmtime::Error::from(error).context(what)
            })?;
            locks.extend(lock);
        }
        Ok(locks)
    }

    /// Locks a directory for this Main. Returns none if it cannot be opened: the later attempt to open it reports that.
    /// Fails if another Main has locked it.
    pub(super) fn take(self: &Arc<Self>, path: &Path) -> io::Result<Option<DirLock>> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(dir) = rustix::fs::open(path, flags, Mode::empty()).map(File::from) else { return Ok(None) };
        let inode = inode(&dir.metadata()?);
        let mut held = self.0.lock();
        match held.get_mut(&inode) {
            Some((_, users)) => *users += 1,
            None => drop(held.insert(inode, (FileLock::take(dir)?, 1))),
        }
        Ok(Some(DirLock { locks: self.clone(), inode }))
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        let mut held = self.locks.0.lock();
        if let Some((_, users)) = held.get_mut(&self.inode) {
            *users -= 1;
            if *users == 0 {
                held.remove(&self.inode);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_one_main_share_a_directory_and_another_main_has_it_after_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (Arc::<DirLocks>::default(), Arc::<DirLocks>::default());
        let first = own.take(dir.path()).unwrap();
        let second = own.take(&dir.path().join(".")).unwrap();
        assert_eq!(other.take(dir.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(other.take(dir.path()).is_err());
        drop(second);
        assert!(other.take(dir.path()).unwrap().is_some());
        assert!(own.take(&dir.path().join("none")).unwrap().is_none());
    }
}

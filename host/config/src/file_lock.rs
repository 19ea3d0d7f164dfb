//! Locks on files and directories that only one process may use.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

/// An advisory lock, as in flock(2), on a file or directory. It ends when it is dropped or the process ends, and leaves
/// nothing behind.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks an open file. Succeeds without a lock if locking fails for another reason than a holder, such as a file
    /// system without locks.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if another process, or another open file of this one, has the lock.
    /// The message names the process if the kernel does.
    pub fn take(file: File) -> io::Result<Self> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let holder = holder(&file).unwrap_or_else(|| "another process".to_owned());
                Err(io::Error::new(io::ErrorKind::WouldBlock, format!("it is in use by {holder}")))
            }
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self(file)),
        }
    }

    /// Whether this locks the same file as `file`. `false` if that is unknown.
    #[must_use]
    pub fn is_of(&self, file: &File) -> bool {
        let id = |file: &File| file.metadata().map(|data| (data.dev(), data.ino())).ok();
        id(&self.0).is_some() && id(&self.0) == id(file)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file would not unlock it: a child process before its `exec` has the descriptor, too.
        let _there_was_none = self.0.unlock();
    }
}

/// The process that has the lock, from proc_locks(5). `None` if the kernel does not list it.
fn holder(file: &File) -> Option<String> {
    let data = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(data.dev()), rustix::fs::minor(data.dev()));
    let id = format!("{major:02x}:{minor:02x}:{}", data.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (kind, pid) = (fields.next()?, fields.nth(2)?);
        (kind == "FLOCK" && fields.next()? == id).then(|| pid.to_owned())
    })?;
    let name = fs::read_to_string(Path::new("/proc").join(&pid).join("comm")).unwrap_or_default();
    Some(format!("process {pid} (`{}`)", weir_names::harmless(name.trim_end(), 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_locked_is_refused_with_who_has_it_until_that_ends() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let lock = FileLock::take(open()).unwrap();
        assert!(lock.is_of(&open()));
        let refused = FileLock::take(open()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let own = format!("it is in use by process {} (`", std::process::id());
        assert!(refused.to_string().starts_with(&own), "{refused}");
        drop(lock);
        FileLock::take(open()).unwrap();
    }
}

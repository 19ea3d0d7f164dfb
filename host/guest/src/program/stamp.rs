//! Stamps of files, which show that a file has changed without reading it.

use std::{
    fs::{self, Metadata},
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, fstatfs, makedev, openat2, statx};

/// After this time, a further change gives the file other times than the last one. The coarsest unit of time is two
/// seconds, on FAT.
const SETTLED: Duration = Duration::from_secs(3);

/// File systems whose times can be trusted, because the kernel's clock stamps each change (`linux/magic.h`): ext2 to
/// ext4, XFS, Btrfs, F2FS, UBIFS, tmpfs and overlays. Servers, FAT and images can show old or chosen times.
const EXACT: [u32; 7] =
    [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x2405_1905, 0x0102_1994, 0x794C_7630];

/// The stamp of a file, which changes with its content. A write through a memory mapping may not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// Returns the stamp of the file or symlink at this path.
    ///
    /// # Errors
    ///
    /// Fails if its metadata cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path).map(|metadata| Self::from(&metadata))
    }

    /// Returns the stamp from the kernel's memory, without waiting for a disk or server. Returns none if there is no
    /// such file, it is not below the plugin directory, or the kernel would have to wait. Follows no symlink below the
    /// plugin directory, if given.
    pub(super) fn in_memory(path: &Path, plugin_dir: Option<&Path>) -> Option<Self> {
        let (flags, mode) = (OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        let file = match plugin_dir {
            None => openat2(CWD, path, flags, mode, ResolveFlags::CACHED),
            Some(plugin_dir) => {
                let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let dir = openat2(CWD, plugin_dir, directory, mode, ResolveFlags::CACHED).ok()?;
                let inside = ResolveFlags::CACHED | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                openat2(dir, path.strip_prefix(plugin_dir).ok()?, flags, mode, inside)
            }
        };
        let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let it = statx(file.ok()?, "", how, StatxFlags::BASIC_STATS).ok()?;
        Some(Self {
            file: (makedev(it.stx_dev_major, it.stx_dev_minor), it.stx_ino),
            bytes: it.stx_size,
            modified: (it.stx_mtime.tv_sec, it.stx_mtime.tv_nsec.into()),
            changed: (it.stx_ctime.tv_sec, it.stx_ctime.tv_nsec.into()),
        })
    }

    /// Whether a further change would show, because the last one is well before `now`. The time of the last change of
    /// metadata decides, because nobody can set that.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().checked_sub(SETTLED);
        since
            .and_then(|since| i64::try_from(since.as_secs()).ok())
            .is_some_and(|since| self.changed.0 < since)
    }
}

impl From<&Metadata> for FileStamp {
    fn from(it: &Metadata) -> Self {
        Self {
            file: (it.dev(), it.ino()),
            bytes: it.len(),
            modified: (it.mtime(), it.mtime_nsec()),
            changed: (it.ctime(), it.ctime_nsec()),
        }
    }
}

/// Whether the kernel surely has the right times of this file in its memory.
pub(super) fn is_exact(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|system| u32::try_from(system.f_type).is_ok_and(|kind| EXACT.contains(&kind)))
}

//! Counts a directory and all directories in it.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::unix::fs::MetadataExt,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat},
    io::Errno,
};
use weir_metrics::DirUsage;

use super::{Amount, Inode, inode};

/// Each entry counts as a multiple of this many bytes, because file systems commonly use such blocks.
pub(crate) const BLOCK: u64 = 4096;

/// How deep nested directories are counted. A count fails at deeper ones. Each level keeps a file open meanwhile.
const DEPTH: u32 = 64;

/// The shortest time from one count to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// The next count waits for at least this many times the duration of the last one.
const REST: u32 = 10;

/// What a directory contains, as far as counted, and the open files in it.
#[derive(Debug)]
pub(super) struct Count {
    pub(super) usage: Arc<DirUsage>,
    root: File,
    /// When the directory may be counted again. None before the first count.
    next: Option<Instant>,
    open: Vec<Weak<File>>,
    /// The open files that have no name any more. Their bytes count until they are closed.
    unlinked: Vec<Unlinked>,
}

/// A file without a name that is still open, perhaps more than once.
#[derive(Debug)]
struct Unlinked {
    inode: Inode,
    bytes: u64,
    open: Vec<Weak<File>>,
}

/// Returns how many bytes an entry of this size counts as.
pub(crate) fn blocks(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(BLOCK).saturating_mul(BLOCK)
}

impl Count {
    pub(super) fn new(root: File, usage: Arc<DirUsage>) -> Self {
        Self { usage, root, next: None, open: Vec::new(), unlinked: Vec::new() }
    }

    pub(super) fn total(&self) -> Amount {
        Amount { files: self.usage.files.now(), bytes: self.usage.bytes.now() }
    }

    /// Counts the contents, unless they were counted before.
    pub(super) fn first(&mut self) -> io::Result<()> {
        if self.next.is_none() { self.count() } else { Ok(()) }
    }

    /// Counts the contents again. Returns false, and does nothing, if the last count is too recent.
    pub(super) fn again(&mut self) -> io::Result<bool> {
        if self.next.is_some_and(|next| Instant::now() < next) {
            return Ok(false);
        }
        self.count().map(|()| true)
    }

    fn count(&mut self) -> io::Result<()> {
        let began = Instant::now();
        let mut found = Amount::default();
        let counted = add(&self.root, c".", DEPTH, &mut found);
        if counted.is_ok() || self.next.is_some() {
            self.next = Some(Instant::now() + PAUSE.max(began.elapsed() * REST));
        }
        counted?;
        self.unlinked.clear();
        self.set(found);
        self.find_unlinked();
        Ok(())
    }

    /// Counts a change of some entries from `before` to `after`.
    pub(super) fn change(&mut self, before: Amount, after: Amount) {
        let Amount { files, bytes } = self.total();
        self.set(Amount {
            files: files.saturating_add(after.files).saturating_sub(before.files),
            bytes: bytes.saturating_add(after.bytes).saturating_sub(before.bytes),
        });
    }

    /// Counts a change of a file's length, which was `before`.
    pub(super) fn resized(&mut self, file: &Arc<File>, before: u64) {
        let Ok(data) = file.metadata() else { return };
        let [before, after] = [before, data.len()].map(|bytes| Amount { files: 0, bytes: blocks(bytes) });
        self.change(before, after);
        if data.nlink() == 0
            && let Some(unlinked) = self.unlinked.iter_mut().find(|other| other.inode == inode(&data))
        {
            unlinked.bytes = after.bytes;
        }
    }

    pub(super) fn opened(&mut self, file: &Arc<File>) {
        self.release();
        self.open.push(Arc::downgrade(file));
    }

    /// Whether files with a name are open, or were open when that was last looked at.
    pub(super) fn has_open_files(&self) -> bool {
        !self.open.is_empty()
    }

    /// Finds open files that have lost their names, and counts their bytes, which are still there.
    pub(super) fn find_unlinked(&mut self) {
        let (mut open, mut bytes) = (std::mem::take(&mut self.open), 0);
        open.retain(|weak| {
            let Some(data) = weak.upgrade().and_then(|file| file.metadata().ok()) else { return false };
            if data.nlink() > 0 {
                return true;
            }
            let inode = inode(&data);
            match self.unlinked.iter_mut().find(|other| other.inode == inode) {
                Some(known) => known.open.push(weak.clone()),
                None => {
                    bytes += blocks(data.len());
                    let open = vec![weak.clone()];
                    self.unlinked.push(Unlinked { inode, bytes: blocks(data.len()), open });
                }
            }
            false
        });
        self.open = open;
        self.change(Amount::default(), Amount { files: 0, bytes });
    }

    /// Forgets files that are closed now. Takes the bytes of those that had no name off the count.
    pub(super) fn release(&mut self) {
        self.open.retain(|file| file.strong_count() > 0);
        let mut bytes = 0;
        self.unlinked.retain_mut(|unlinked| {
            unlinked.open.retain(|file| file.strong_count() > 0);
            let is_there = !unlinked.open.is_empty();
            bytes += if is_there { 0 } else { unlinked.bytes };
            is_there
        });
        self.change(Amount { files: 0, bytes }, Amount::default());
    }

    fn set(&self, Amount { files, bytes }: Amount) {
        self.usage.files.set(files);
        self.usage.bytes.set(bytes);
    }
}

/// Adds the contents of a directory to `found`. Follows no symlink, and skips what is removed meanwhile.
fn add(parent: &File, name: &CStr, depth: u32, found: &mut Amount) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let dir = match openat(parent, name, flags, Mode::empty()) {
        Ok(dir) => File::from(dir),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(io::Error::other(format!("directories are nested deeper than {DEPTH}")));
    };
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let data = match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            data => data?,
        };
        let is_dir = FileType::from_raw_mode(data.st_mode) == FileType::Directory;
        let bytes = if is_dir { 0 } else { u64::try_from(data.st_size).unwrap_or(0) };
        found.files += 1;
        found.bytes = found.bytes.saturating_add(blocks(bytes));
        if is_dir {
            add(&dir, name, depth, found)?;
        }
    }
    Ok(())
}

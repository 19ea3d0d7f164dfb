//! Bounds what is in a directory that guests write to. The contents are counted, and an operation beyond the operator's
//! limit is refused.
//!
//! A directory is counted as a whole when its first guest starts. After that, each operation of a guest changes the
//! count. Others may write there, too, so the directory is counted again before a refusal, but not often.

mod count;
mod stream;

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::unix::fs::{FileExt, MetadataExt},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};
use weir_config::DirGrant;
use weir_metrics::{DirUsage, Usage};

use self::count::Count;
pub(super) use self::{
    count::{BLOCK, blocks},
    stream::CountedStream,
};

/// The device and inode number of a directory, whatever path leads to it.
pub(crate) type Inode = (u64, u64);

/// Directories with a bounded size, each counted once for all its guests.
#[derive(Debug, Default)]
pub struct Quotas(Mutex<HashMap<Inode, Weak<Counted>>>);

/// A directory with a bounded size, common to all grants of it.
#[derive(Debug)]
struct Counted {
    usage: Arc<DirUsage>,
    /// The count. Guests take turns with it: one operation is counted before the next begins.
    count: Arc<Turns<Count>>,
}

/// The bounds of one grant in a counted directory.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    counted: Arc<Counted>,
    max_bytes: u64,
    max_files: u64,
    /// Whether file operations may block the polling thread.
    may_block: bool,
}

/// A turn with a directory, during which no other guest changes its count.
pub(super) struct Turn {
    quota: Quota,
    count: OwnedMutexGuard<Count>,
}

/// A number of directory entries, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Quotas {
    /// Returns the quota of a grant, if its size is bounded. Opens the directory, which may block. [`Quota::prepare`]
    /// counts it later.
    pub(super) fn open(&self, grant: &DirGrant, usage: &Usage, may_block: bool) -> io::Result<Option<Quota>> {
        if !grant.is_bounded() {
            return Ok(None);
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = File::from(rustix::fs::open(&grant.host, flags, Mode::empty())?);
        let inode = inode(&root.metadata()?);
        let mut known = self.0.lock();
        known.retain(|_, counted| counted.strong_count() > 0);
        let counted = known.get(&inode).and_then(Weak::upgrade).unwrap_or_else(|| {
            // After a restart of the extension, its earlier figures go on.
            let usage = usage.dir(&grant.host).unwrap_or_default();
            let count = Arc::new(Turns::new(Count::new(root, usage.clone())));
            let counted = Arc::new(Counted { usage, count });
            known.insert(inode, Arc::downgrade(&counted));
            counted
        });
        drop(known);
        usage.set_dir(&grant.host, counted.usage.clone());
        let [max_bytes, max_files] =
            [grant.max_bytes, grant.max_files].map(|bound| bound.unwrap_or(u64::MAX));
        Ok(Some(Quota { counted, max_bytes, max_files, may_block }))
    }
}

impl Quota {
    /// Counts the directory, unless it was counted before.
    pub(super) async fn prepare(&self) -> io::Result<()> {
        let Turn { mut count, .. } = self.turn().await;
        blocking(self.may_block, move || count.first()).await
    }

    /// Whether both quotas are of one counted directory, or neither place has a quota.
    pub(super) fn are_together(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.counted, &other.counted),
            (None, None) => true,
            _ => false,
        }
    }

    /// Waits until no other guest is about to change the contents, and returns the turn.
    pub(super) async fn turn(&self) -> Turn {
        let count = self.counted.count.clone().lock_owned().await;
        Turn { quota: self.clone(), count }
    }

    /// Writes to a file, at its end if no place is given. Fails if there is no room. Returns the bytes written, perhaps
    /// fewer than given.
    pub(super) async fn write(
        &self,
        file: Arc<File>,
        bytes: impl AsRef<[u8]> + Send + 'static,
        at: Option<u64>,
    ) -> io::Result<usize> {
        let mut turn = self.turn().await;
        blocking(self.may_block, move || {
            let bytes = bytes.as_ref();
            let write = |file: &File, length| file.write_at(bytes, at.unwrap_or(length));
            let written = turn.resize(
                &file,
                |length| at.unwrap_or(length).saturating_add(bytes.len() as u64).max(length),
                write,
            )?;
            turn.count.usage.add_written(written as u64);
            Ok(written)
        })
        .await
    }

    pub(super) async fn set_size(&self, file: Arc<File>, size: u64) -> io::Result<()> {
        let mut turn = self.turn().await;
        blocking(self.may_block, move || turn.resize(&file, |_| size, |file, _| file.set_len(size))).await
    }

    /// Notes a file that a guest opened. Its bytes count as long as it is open, even if it loses its name.
    pub(super) async fn opened(&self, file: &Arc<File>) {
        self.turn().await.count.opened(file);
    }
}

impl Turn {
    /// Returns the turn, and whether there is room for one more entry of this size.
    pub(super) async fn has_room(self, bytes: u64) -> (Self, bool) {
        let may_block = self.quota.may_block;
        blocking(may_block, move || {
            let mut turn = self;
            let has_room = turn.room(Amount { files: 1, bytes: blocks(bytes) }).is_ok();
            (turn, has_room)
        })
        .await
    }

    /// Counts a change of directory entries, of which there were `before` and are `after`. If some are gone, looks for
    /// open files that have lost their names.
    pub(super) async fn changed(mut self, before: Amount, after: Amount) {
        self.count.change(before, after);
        if after.files < before.files && self.count.has_open_files() {
            let may_block = self.quota.may_block;
            blocking(may_block, move || self.count.find_unlinked()).await;
        }
    }

    /// Applies `act` to a file, if there is room for the new length that `length` computes, and fails otherwise. Both
    /// functions get the old length.
    fn resize<T>(
        &mut self,
        file: &Arc<File>,
        length: impl FnOnce(u64) -> u64,
        act: impl FnOnce(&File, u64) -> io::Result<T>,
    ) -> io::Result<T> {
        let before = file.metadata()?.len();
        let more = blocks(length(before)).saturating_sub(blocks(before));
        if more > 0 {
            self.room(Amount { files: 0, bytes: more })?;
        }
        let result = act(file, before);
        self.count.resized(file, before);
        result
    }

    /// Fails if there is no room for this much more, also after a new count where that is allowed.
    fn room(&mut self, more: Amount) -> io::Result<()> {
        let Quota { max_bytes, max_files, .. } = self.quota;
        let is_over = |count: &Count| {
            let Amount { files, bytes } = count.total();
            files.saturating_add(more.files) > max_files || bytes.saturating_add(more.bytes) > max_bytes
        };
        self.count.release();
        if is_over(&self.count) && (!self.count.again()? || is_over(&self.count)) {
            return Err(Errno::NOSPC.into());
        }
        Ok(())
    }
}

/// Does blocking work: on this thread if it `may_block`, and otherwise on a thread of the pool.
pub(crate) async fn blocking<T: Send + 'static>(
    may_block: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if may_block {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The work was cancelled: the runtime ends, and is about to drop the caller.
            Err(_) => std::future::pending().await,
        },
    }
}

pub(crate) fn inode(data: &std::fs::Metadata) -> Inode {
    (data.dev(), data.ino())
}

//! The bound on the size of a store's file. A transaction that needs a larger file is undone before its commit.

use std::{
    fs::File,
    io,
    ops::Bound as RangeBound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};
use rustix::{fs::FallocateFlags, io::Errno};

/// The size of one file and its bound, shared by the file's storage and the thread that writes.
#[derive(Debug)]
pub(crate) struct Bound {
    /// The most bytes that the file may have. [`u64::MAX`], no bound, while there is no [`Held`].
    most: AtomicU64,
    /// Bytes that the file has, without those that a transaction over the bound wrote beyond them. [`u64::MAX`] until
    /// the file is opened.
    length: AtomicU64,
    /// The length over the bound that the transaction under way needs. 0 if the transaction fits.
    wanted: AtomicU64,
}

/// Enforces a bound until it is dropped: for the changes of a transaction, but not for its commit.
#[derive(Debug)]
pub(crate) struct Held<'b>(&'b Bound);

impl Bound {
    pub(crate) fn hold(&self, most: u64) -> Held<'_> {
        self.wanted.store(0, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
        Held(self)
    }

    /// Bytes of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }
}

impl Default for Bound {
    fn default() -> Self {
        Self { most: AtomicU64::new(u64::MAX), length: AtomicU64::new(u64::MAX), wanted: AtomicU64::new(0) }
    }
}

impl Held<'_> {
    /// Whether the transaction needs a larger file than the bound allows. It must then be undone.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.most.store(u64::MAX, Ordering::Relaxed);
        self.0.wanted.store(0, Ordering::Relaxed);
    }
}

/// The storage of a file within its bound. When redb asks for more, it is told that the file has grown, although it
/// has not.
#[derive(Debug)]
pub(crate) struct Bounded<B> {
    inner: B,
    bound: Arc<Bound>,
    /// The file on disk, where room is reserved. `None` for storage that is not a file.
    file: Option<File>,
    /// Locked while the length changes. Readers write pages too, and no thread may cut off the pages of another.
    resizing: Mutex<()>,
}

impl<B: StorageBackend> Bounded<B> {
    pub(crate) fn new(inner: B, bound: Arc<Bound>, file: Option<File>) -> io::Result<Self> {
        bound.length.store(inner.len()?, Ordering::Relaxed);
        Ok(Self { inner, bound, file, resizing: Mutex::default() })
    }

    /// Makes the file at least `end` bytes long.
    fn reach(&self, end: u64) -> io::Result<()> {
        let _alone = self.resizing.lock();
        if end > self.inner.len()? { self.resize(end) } else { Ok(()) }
    }

    /// Sets the length of the file. Reserves room on disk for what is added, as far as the disk has it, so that changes
    /// that were answered can be written.
    fn resize(&self, len: u64) -> io::Result<()> {
        if let Some(file) = &self.file {
            let before = self.inner.len()?;
            if len > before {
                match rustix::fs::fallocate(file, FallocateFlags::empty(), before, len - before) {
                    // Some file systems cannot reserve room. And a file grows by doubling: a disk without room for all
                    // of that may have room for what is written now.
                    Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL | Errno::NOSPC) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.inner.set_len(len)
    }
}

impl<B: StorageBackend> StorageBackend for Bounded<B> {
    fn len(&self) -> io::Result<u64> {
        match self.bound.wanted.load(Ordering::Relaxed) {
            0 => self.inner.len(),
            wanted => Ok(wanted),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.bound.most.load(Ordering::Relaxed) && len > self.bound.length() {
            self.bound.wanted.store(len, Ordering::Relaxed);
            return Ok(());
        }
        let _alone = self.resizing.lock();
        self.resize(len)?;
        self.bound.wanted.store(0, Ordering::Relaxed);
        self.bound.length.store(len, Ordering::Relaxed);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.bound.wanted.load(Ordering::Relaxed) > 0 {
            // redb writes pages that its cache has no room for. They are undone with the transaction.
            self.reach(offset.saturating_add(data.len() as u64))?;
        }
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: RangeBound<u64>, end: RangeBound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: RangeBound<u64>,
        end: RangeBound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: RangeBound<u64>, end: RangeBound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: RangeBound<u64>, end: RangeBound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: RangeBound<u64>, end: RangeBound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: RangeBound<u64>, end: RangeBound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}

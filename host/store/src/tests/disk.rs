//! A disk in memory: it keeps what was synced apart from what was only written, fails where it is told to, and has
//! room for so much.

use std::{io, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use redb::StorageBackend;

#[derive(Clone, Debug)]
pub(super) struct Disk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Since the last sync: where, and what. A length is a place without content.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// Writes, changes of the length and syncs so far.
    steps: usize,
    syncs: usize,
    /// All steps from this one on fail, as without power.
    cut_at: usize,
    /// The sync that fails, after what it was to sync has reached the disk: so many are whole before it.
    late_failure: Option<usize>,
    /// Reads that fail next.
    failing_reads: usize,
    /// Bytes that it has room for.
    room: usize,
    /// Bytes that the file had at most.
    longest: usize,
    is_open: bool,
}

/// One use of the disk, until it is closed.
#[derive(Debug)]
pub(super) struct OpenDisk(Disk);

impl Disk {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Vec::new(),
            synced: Vec::new(),
            unsynced: Vec::new(),
            steps: 0,
            syncs: 0,
            cut_at: usize::MAX,
            late_failure: None,
            failing_reads: 0,
            room: usize::MAX,
            longest: 0,
            is_open: false,
        })))
    }

    pub(super) fn of(content: Vec<u8>) -> Self {
        let disk = Self::new();
        disk.state().now.clone_from(&content);
        disk.state().synced = content;
        disk
    }

    pub(super) fn opened(&self) -> OpenDisk {
        assert!(!std::mem::replace(&mut self.state().is_open, true), "two have it");
        OpenDisk(self.clone())
    }

    pub(super) fn steps(&self) -> usize {
        self.state().steps
    }

    pub(super) fn syncs(&self) -> usize {
        self.state().syncs
    }

    pub(super) fn cut_at(&self, step: usize) {
        self.state().cut_at = step;
    }

    pub(super) fn fail_late(&self, whole_before: usize) {
        self.state().late_failure = Some(whole_before);
    }

    /// Whether the sync that was to fail has failed.
    pub(super) fn has_failed_late(&self) -> bool {
        self.state().late_failure.take().is_none()
    }

    pub(super) fn fail_reads(&self, number: usize) {
        self.state().failing_reads = number;
    }

    pub(super) fn set_room(&self, bytes: usize) {
        self.state().room = bytes;
    }

    pub(super) fn len(&self) -> usize {
        self.state().now.len()
    }

    pub(super) fn longest(&self) -> usize {
        self.state().longest
    }

    pub(super) fn content(&self) -> Vec<u8> {
        self.state().now.clone()
    }

    /// What is there after the power came back: what was synced, and of what was written since what `survives` says,
    /// by its number and its length.
    pub(super) fn after_power_loss(&self, mut survives: impl FnMut(usize) -> usize) -> Vec<u8> {
        let state = self.state();
        let mut content = state.synced.clone();
        for (at, bytes) in &state.unsynced {
            if bytes.is_empty() {
                if survives(1) == 1 {
                    content.resize(*at, 0);
                }
                continue;
            }
            let kept = survives(bytes.len()).min(bytes.len());
            let end = at + kept;
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*at..end].copy_from_slice(&bytes[..kept]);
        }
        content
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    fn step(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if state.steps >= state.cut_at {
            return Err(io::Error::other("no power"));
        }
        state.steps += 1;
        Ok(state)
    }
}

impl StorageBackend for OpenDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.0.state();
        if state.failing_reads > 0 {
            state.failing_reads -= 1;
            return Err(io::Error::other("a bad block"));
        }
        let offset = usize::try_from(offset).unwrap();
        let found = state.now.get(offset..offset + out.len());
        out.copy_from_slice(found.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.0.step()?;
        let len = usize::try_from(len).unwrap();
        if len > state.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.now.resize(len, 0);
        state.longest = state.longest.max(len);
        state.unsynced.push((len, Vec::new()));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.step()?;
        state.syncs += 1;
        state.synced = state.now.clone();
        state.unsynced.clear();
        match state.late_failure {
            Some(0) => {
                state.late_failure = None;
                return Err(io::Error::other("the disk failed late"));
            }
            before => state.late_failure = before.map(|number| number - 1),
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.step()?;
        let offset = usize::try_from(offset).unwrap();
        state.now[offset..offset + data.len()].copy_from_slice(data);
        state.unsynced.push((offset, data.to_vec()));
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.0.state().is_open = false;
        Ok(())
    }
}

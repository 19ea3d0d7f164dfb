//! Whether a peer takes requests, in a cell that threads read without a lock.

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use weir_names::truncated;

/// Whether a peer takes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No instance runs. Requests are refused.
    Down,
    /// An instance starts. Requests wait in the inbox.
    Starting,
    /// The instance serves. Requests wait in the inbox until it takes them.
    Ready,
    /// Requests are refused with the reason that the peer gave.
    Interrupted(String),
    /// The instance finishes, and another one follows. Requests wait in the inbox.
    Replacing,
    /// The instance finishes, and no other follows. Requests are refused.
    Draining,
}

#[derive(Debug)]
pub(super) struct PhaseCell {
    code: AtomicU8,
    interruption: Mutex<String>,
}

impl Default for PhaseCell {
    fn default() -> Self {
        Self { code: AtomicU8::new(DOWN), interruption: Mutex::default() }
    }
}

impl PhaseCell {
    pub(super) fn get(&self) -> Phase {
        match self.code.load(Ordering::Acquire) {
            STARTING => Phase::Starting,
            READY => Phase::Ready,
            INTERRUPTED => Phase::Interrupted(self.interruption.lock().clone()),
            DRAINING => Phase::Draining,
            REPLACING => Phase::Replacing,
            _ => Phase::Down,
        }
    }

    /// Sets the phase. Returns whether the inbox refuses requests from now on.
    pub(super) fn set(&self, phase: Phase) -> bool {
        let code = match phase {
            Phase::Down => DOWN,
            Phase::Starting => STARTING,
            Phase::Ready => READY,
            Phase::Interrupted(reason) => {
                *self.interruption.lock() = truncated(reason, 1024);
                INTERRUPTED
            }
            Phase::Draining => DRAINING,
            Phase::Replacing => REPLACING,
        };
        self.code.store(code, Ordering::Release);
        matches!(code, DOWN | DRAINING)
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.code.load(Ordering::Acquire), STARTING | READY | INTERRUPTED)
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self.code.load(Ordering::Acquire), STARTING | REPLACING)
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.code.load(Ordering::Acquire) == READY
    }
}

const DOWN: u8 = 0;
const STARTING: u8 = 1;
const READY: u8 = 2;
const INTERRUPTED: u8 = 3;
const DRAINING: u8 = 4;
const REPLACING: u8 = 5;

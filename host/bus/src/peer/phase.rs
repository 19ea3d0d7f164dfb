//! Whether a peer takes requests, in a cell that threads read without a lock.

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use weir_names::truncated;

/// Whether a peer takes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Requests are refused.
    Down,
    /// Requests wait in the inbox.
    Starting,
    /// Requests wait in the inbox.
    Ready,
    /// Requests are refused with the reason that the peer gave.
    Interrupted(String),
    /// It finishes, and another instance follows: requests wait in the inbox.
    Replacing,
    /// It finishes: requests are refused.
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

    /// Returns whether requests are refused from now on.
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

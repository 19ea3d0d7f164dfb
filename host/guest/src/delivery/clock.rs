//! The time that all messages of one receive get.

use std::cell::Cell;

use tokio::time::Instant;
use weir_metrics::moment;

use crate::meter::Meter;

/// One time for all messages of a receive, because reading the clock is a good part of a message's cost.
#[derive(Debug)]
pub(super) struct Clock<'m> {
    meter: &'m Meter,
    read: Cell<Option<u64>>,
}

impl<'m> Clock<'m> {
    pub(super) fn new(meter: &'m Meter) -> Self {
        Self { meter, read: Cell::new(None) }
    }

    /// Returns the time as a [`moment`]. For a guest that was just woken, that is the time when it was woken.
    pub(super) fn now(&self) -> u64 {
        let now = self.read.get().or_else(|| self.meter.woken());
        let now = now.unwrap_or_else(|| moment(Instant::now().into_std()));
        self.read.set(Some(now));
        now
    }

    /// Makes the next call read the clock again, because time has passed.
    pub(super) fn read_anew(&self) {
        self.read.set(None);
    }
}

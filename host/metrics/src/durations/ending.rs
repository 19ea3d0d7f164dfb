//! Durations that end where the thread's work is given up, and are measured by the clock reading made there.

use std::{cell::RefCell, sync::Arc, time::Instant};

use super::Durations;
use crate::moment;

/// So many are measured at once, by a clock reading of their own.
const MAX_UNMEASURED: usize = 64;

thread_local! {
    /// Where each duration goes, and the moment when it began.
    static ENDING: RefCell<Vec<(Arc<Durations>, u64)>> = const { RefCell::new(Vec::new()) };
}

impl Durations {
    /// Counts one that began at this [`moment`], and ends at the next [`measure_ending`] on this thread.
    #[inline]
    pub fn add_ending(self: Arc<Self>, began: u64) {
        let is_full = ENDING.with_borrow_mut(|ending| {
            ending.push((self, began));
            ending.len() >= MAX_UNMEASURED
        });
        if is_full {
            measure_ending(moment(Instant::now()));
        }
    }
}

/// What this thread does is given up at this [`moment`]: durations that it has [added](Durations::add_ending) end.
#[inline]
pub fn measure_ending(now: u64) {
    ENDING.with_borrow_mut(|ending| {
        // `drain` costs a turn more.
        while let Some((durations, began)) = ending.pop() {
            durations.add(now.saturating_sub(began));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_measured_when_the_thread_is_given_up_or_they_are_many() {
        let durations = Arc::new(Durations::default());
        let counted = || durations.snapshot().buckets.iter().sum::<u64>();
        let began = moment(Instant::now());
        for number in 1..100 {
            durations.clone().add_ending(began);
            assert_eq!(counted(), if number < 64 { 0 } else { 64 });
        }
        measure_ending(began + 1_000_000_000);
        assert_eq!(counted(), 99);
        assert!(durations.snapshot().sum >= 35.0);
        assert!(ENDING.with_borrow(Vec::capacity) <= 64);
    }
}

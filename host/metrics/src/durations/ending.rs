//! Durations that end where the thread's work is given up, and are measured by the clock reading made there.

use std::{cell::RefCell, sync::Arc, time::Instant};

use super::Durations;

/// So many are measured at once, by a clock reading of their own.
const MAX_UNMEASURED: usize = 64;

thread_local! {
    /// Where each duration goes, and when it began.
    static ENDING: RefCell<Vec<(Arc<Durations>, Instant)>> = const { RefCell::new(Vec::new()) };
}

impl Durations {
    /// Counts one that began then, and ends at the next [`measure_ending`] on this thread.
    #[inline]
    pub fn add_ending(self: Arc<Self>, began: Instant) {
        let is_full = ENDING.with_borrow_mut(|ending| {
            ending.push((self, began));
            ending.len() >= MAX_UNMEASURED
        });
        if is_full {
            measure_ending(Instant::now());
        }
    }
}

/// What this thread does is given up now: durations that it has [added](Durations::add_ending) end.
#[inline]
pub fn measure_ending(now: Instant) {
    ENDING.with_borrow_mut(|ending| {
        for (durations, began) in ending.drain(..) {
            durations.add(now.saturating_duration_since(began));
        }
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn durations_are_measured_when_the_thread_is_given_up_or_they_are_many() {
        let durations = Arc::new(Durations::default());
        let counted = || durations.snapshot().buckets.iter().sum::<u64>();
        let began = Instant::now();
        for number in 1..100 {
            durations.clone().add_ending(began);
            assert_eq!(counted(), if number < 64 { 0 } else { 64 });
        }
        measure_ending(began + Duration::from_secs(1));
        assert_eq!(counted(), 99);
        assert!(durations.snapshot().sum >= 35.0);
        assert!(ENDING.with_borrow(Vec::capacity) <= 64);
    }
}

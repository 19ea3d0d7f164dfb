//! The rate of events over the last minute.

use std::time::Duration;

const SLOT_SECONDS: u64 = 5;

const SLOTS: usize = 12;

/// Counts of the last minute, in slots of five seconds.
#[derive(Debug, Default)]
pub(crate) struct Minute {
    /// The newest first.
    slots: [u32; SLOTS],
    /// The number of the newest slot.
    newest: u64,
}

impl Minute {
    /// Counts one event. Time never goes back.
    pub(crate) fn add(&mut self, now: Duration) {
        self.turn_to(now);
        let [newest, ..] = &mut self.slots;
        *newest = newest.saturating_add(1);
    }

    /// Events a second, on average.
    pub(crate) fn per_second(&mut self, now: Duration) -> f64 {
        self.turn_to(now);
        self.slots.iter().map(|count| f64::from(*count)).sum::<f64>() / 60.0
    }

    fn turn_to(&mut self, now: Duration) {
        let newest = now.as_secs() / SLOT_SECONDS;
        let passed = usize::try_from(newest.saturating_sub(self.newest)).unwrap_or(SLOTS).min(SLOTS);
        self.slots.rotate_right(passed);
        self.slots.iter_mut().take(passed).for_each(|slot| *slot = 0);
        self.newest = newest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_older_than_a_minute_no_longer_counts() {
        let mut minute = Minute::default();
        for second in 0..600 {
            minute.add(seconds(second));
        }
        assert_eq!(minute.per_second(seconds(599)), 1.0);
        assert_eq!(minute.per_second(seconds(629)), 0.5);
        assert_eq!(minute.per_second(seconds(654)), 5.0 / 60.0);
        assert_eq!(minute.per_second(seconds(655)), 0.0);
        assert_eq!(minute.per_second(Duration::MAX), 0.0);
    }

    #[test]
    fn a_burst_counts_for_a_minute() {
        let mut minute = Minute::default();
        (0..120).for_each(|_| minute.add(seconds(1000)));
        assert_eq!(minute.per_second(seconds(1000)), 2.0);
        assert_eq!(minute.per_second(seconds(1059)), 2.0);
        assert_eq!(minute.per_second(seconds(1060)), 0.0);
    }
}

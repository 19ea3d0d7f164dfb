//! How long things of one kind took, and durations as numbers.

use std::{
    cell::RefCell,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

/// The shortest bound is 2 to this power, in nanoseconds: 1.024 µs.
const FIRST: u32 = 10;

/// The longest bound is 2 to this power, in nanoseconds: 68.7 s.
const LAST: u32 = 36;

/// Two buckets for each power of two between these bounds, one bucket below and one above.
const BUCKETS: usize = 2 * (LAST - FIRST) as usize + 2;

/// Counts of durations in buckets, and their sum. Any thread may add.
///
/// The bounds are so close that a quantile read from the counts is at most a half too large.
#[derive(Debug)]
pub struct Durations {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

/// [`Durations`] at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DurationsSnapshot {
    /// The sum of all durations, in seconds.
    pub sum: f64,
    /// Durations in each bucket: longer than the [bound](Self::bounds) before, and at most its own. The last has
    /// no bound.
    pub buckets: Vec<u64>,
}

impl Default for Durations {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], nanoseconds: AtomicU64::new(0) }
    }
}

impl DurationsSnapshot {
    /// The upper bound of each bucket but the last: 2ⁿ ns and 1.5 · 2ⁿ ns for n from 10, which is 1.024 µs, to 36, which
    /// is 68.7 s.
    pub fn bounds() -> impl Iterator<Item = Duration> {
        let halves = (2 * FIRST..=2 * LAST).map(|half| (half / 2, half % 2));
        halves.map(|(power, half)| Duration::from_nanos((1 << power) + u64::from(half) * (1 << (power - 1))))
    }

    /// Adds durations of another time.
    pub fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
    }

    /// The durations that were added since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let was = before.buckets.iter().copied().chain(std::iter::repeat(0));
        Self {
            sum: (self.sum - before.sum).max(0.0),
            buckets: self.buckets.iter().zip(was).map(|(now, was)| now.saturating_sub(was)).collect(),
        }
    }

    /// The bound of the bucket that `part` of `whole` durations do not exceed. None without durations, and for a bucket
    /// without a bound.
    #[must_use]
    pub fn quantile(&self, part: u64, whole: u64) -> Option<Duration> {
        let mut above = self.buckets.iter().sum::<u64>().saturating_mul(part).div_ceil(whole.max(1));
        if above == 0 {
            return None;
        }
        self.buckets.iter().zip(Self::bounds()).find_map(|(count, bound)| {
            let is_reached = *count >= above;
            above = above.saturating_sub(*count);
            is_reached.then_some(bound)
        })
    }
}

impl Durations {
    /// Counts a duration.
    #[inline]
    pub fn add(&self, nanoseconds: u64) {
        if let Some(bucket) = self.buckets.get(bucket(nanoseconds)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// What was counted so far. A duration that is added meanwhile may be in the sum alone.
    pub fn snapshot(&self) -> DurationsSnapshot {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let sum = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        DurationsSnapshot { sum, buckets }
    }
}

/// The index of the first bucket whose bound is not below the duration.
#[inline]
fn bucket(nanoseconds: u64) -> usize {
    // A duration that equals a bound belongs to the bucket below it.
    let below = nanoseconds.saturating_sub(1) | 1;
    let power = below.ilog2();
    if power < FIRST {
        return 0;
    }
    let half = (below >> (power - 1)) & 1;
    let place = 2 * u64::from(power - FIRST) + half + 1;
    usize::try_from(place).unwrap_or(usize::MAX).min(BUCKETS - 1)
}

/// When this many durations of a thread wait for their end, the clock is read to end them.
const MAX_UNMEASURED: usize = 64;

thread_local! {
    /// Where each duration goes, and the moment when it began.
    static ENDING: RefCell<Vec<(Arc<Durations>, u64)>> = const { RefCell::new(Vec::new()) };
}

impl Durations {
    /// Counts a duration that began at this [`moment`]. It ends at the next [`measure_ending`] on this thread, or when
    /// 64 wait for that.
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

/// Ends the durations that this thread has [added](Durations::add_ending), at this [`moment`].
#[inline]
pub fn measure_ending(now: u64) {
    ENDING.with_borrow_mut(|ending| {
        // `drain` would cost more in each turn of an extension.
        while let Some((durations, began)) = ending.pop() {
            durations.add(now.saturating_sub(began));
        }
    });
}

const IN_A_SECOND: u64 = 1_000_000_000;

/// When this process first asked for a [`moment`].
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A point in time as a number: nanoseconds since the process began to count them, 0 for all before. A difference of two
/// costs much less than one of `Instant`s.
#[inline]
pub fn moment(time: Instant) -> u64 {
    nanoseconds(time.saturating_duration_since(*BEGAN))
}

/// A duration in nanoseconds. Saturates after more than 500 years.
#[inline]
pub fn nanoseconds(duration: Duration) -> u64 {
    // `as_nanos` computes in 128 bits, which would cost twice as much in each turn of an extension.
    duration.as_secs().saturating_mul(IN_A_SECOND).saturating_add(duration.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nanoseconds: u64) -> usize {
        let durations = Durations::default();
        durations.add(nanoseconds);
        durations.snapshot().buckets.iter().position(|count| *count == 1).unwrap()
    }

    #[test]
    fn each_duration_is_above_the_bound_before_and_at_most_its_own() {
        let bounds: Vec<_> = DurationsSnapshot::bounds().map(nanoseconds).collect();
        assert_eq!(
            (bounds.len(), bounds.first(), bounds.last()),
            (BUCKETS - 1, Some(&1024), Some(&(1 << 36)))
        );
        for (place, bound) in bounds.iter().enumerate() {
            assert_eq!((of(*bound), of(bound + 1)), (place, place + 1), "{bound}");
        }
        assert_eq!((of(0), of(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn the_sum_is_in_seconds() {
        let durations = Durations::default();
        durations.add(500_000_000);
        durations.add(1_500_000_000);
        let snapshot = durations.snapshot();
        assert_eq!((snapshot.sum, snapshot.buckets.iter().sum::<u64>()), (2.0, 2));
    }

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

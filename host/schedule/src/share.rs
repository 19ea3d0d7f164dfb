//! A share of the worker thread's time. Credit grows as time passes, and is spent by work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use weir_metrics::moment;
use weir_names::CpuShare;

/// An extension may use its share of this time at once, so that short bursts are not delayed.
const BURST: Duration = Duration::from_millis(500);

/// A delay lasts until the extension has its share of this time as credit. Less would take a timer for each slice, and
/// more would make long pauses.
const RESUME: Duration = Duration::from_millis(10);

/// The most nanoseconds of work that an extension owes. A suspended machine may count its pause as processor time.
const MAX_DEBT: i64 = 1_000_000_000;

/// Hundredths of a percent in the whole.
const WHOLE: i64 = 10_000;

/// The share of one extension. A restart does not renew it.
#[derive(Debug)]
pub struct SharedShare {
    share: Mutex<Share>,
    /// Nanoseconds of work that other threads did for the extension, not yet taken off the credit.
    elsewhere: Arc<AtomicU64>,
}

impl SharedShare {
    /// Makes a share that starts with the credit of a burst.
    pub fn new(share: CpuShare) -> Self {
        let share = Mutex::new(Share::new(share, moment(Instant::now())));
        Self { share, elsewhere: Arc::default() }
    }

    /// Returns the counter where other threads add the nanoseconds that they work for the extension. They are taken off
    /// the credit when the extension next runs.
    pub fn elsewhere(&self) -> Arc<AtomicU64> {
        self.elsewhere.clone()
    }

    /// Returns the nanoseconds that other threads worked since the last call, for the caller to take off the credit.
    #[inline]
    pub(crate) fn take_elsewhere(&self) -> u64 {
        match self.elsewhere.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.elsewhere.swap(0, Ordering::Relaxed),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Share> {
        self.share.lock()
    }
}

/// What one extension may use of the worker thread.
///
/// A token bucket: it fills by `share` nanoseconds each nanosecond, up to the share of [`BURST`]. It is looked at only
/// when the extension runs, so an idle one costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// The share, in hundredths of a percent of the worker thread's time.
    points: i64,
    /// Nanoseconds of work that the extension may do now. Negative when it has used more than its share.
    credit: i64,
    /// When credit was last added, as a [`moment`].
    looked: u64,
}

impl Share {
    pub(crate) fn new(share: CpuShare, now: u64) -> Self {
        let points = i64::try_from(share.basis_points()).unwrap_or(WHOLE).clamp(1, WHOLE);
        Self { points, credit: part(points, BURST), looked: now }
    }

    /// Adds the credit earned since the last call. Returns how long the extension must wait, or none if it may run.
    #[inline]
    pub(crate) fn wait(&mut self, now: u64) -> Option<Duration> {
        if self.points == WHOLE {
            return None;
        }
        let earned = part(self.points, Duration::from_nanos(now.saturating_sub(self.looked)));
        // If less than a nanosecond was earned, `looked` stays, so that the fraction is not lost.
        if earned > 0 {
            self.looked = now;
            self.credit = self.credit.saturating_add(earned).min(part(self.points, BURST));
        }
        if self.credit >= 0 {
            return None;
        }
        let missing = part(self.points, RESUME).saturating_sub(self.credit);
        let wait = missing.saturating_mul(WHOLE) / self.points;
        Some(Duration::from_nanos(u64::try_from(wait).unwrap_or_default()))
    }

    #[inline]
    pub(crate) fn spend(&mut self, nanoseconds: u64) {
        let spent = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_sub(spent).max(-MAX_DEBT);
    }
}

/// Returns `points` hundredths of a percent of `time`, in nanoseconds.
fn part(points: i64, time: Duration) -> i64 {
    let nanoseconds = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    nanoseconds.checked_mul(points).map_or(i64::MAX, |product| product / WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs an always busy guest in polls of `slice` for `time`; returns the share that it used.
    fn busy(share: &str, slice: Duration, time: Duration) -> f64 {
        let start = Instant::now();
        let mut share = Share::new(share.parse().unwrap(), moment(start));
        let (mut now, mut used) = (start, Duration::ZERO);
        while now < start + time {
            match share.wait(moment(now)) {
                // Timers are late.
                Some(wait) => now += wait + Duration::from_millis(1),
                None => {
                    share.spend(u64::try_from(slice.as_nanos()).unwrap());
                    now += slice;
                    used += slice;
                }
            }
        }
        used.as_secs_f64() / time.as_secs_f64()
    }

    #[test]
    fn a_busy_guest_gets_its_share_over_ten_seconds_whatever_its_slices() {
        for (text, share) in [("0.1%", 0.001), ("5%", 0.05), ("20%", 0.2), ("50%", 0.5), ("99%", 0.99)] {
            for slice in [Duration::from_micros(1), Duration::from_micros(80), Duration::from_micros(900)] {
                let used = busy(text, slice, Duration::from_secs(10));
                assert!((used / share - 1.0).abs() < 0.15, "{text} in slices of {slice:?}: {used}");
            }
        }
    }

    #[test]
    fn the_whole_thread_is_never_waited_for() {
        assert!((busy("100%", Duration::from_millis(1), Duration::from_secs(1)) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_second_is_owed_at_most() {
        let start = Instant::now();
        let mut share = Share::new("10%".parse().unwrap(), moment(start));
        share.spend(3_600_000_000_000);
        let wait = share.wait(moment(start)).unwrap();
        assert!((10.0..10.1).contains(&wait.as_secs_f64()), "{wait:?}");
    }

    #[test]
    fn a_burst_of_half_a_second_s_share_is_not_delayed_and_idleness_earns_no_more() {
        let start = Instant::now();
        let mut share = Share::new("10%".parse().unwrap(), moment(start));
        let later = start + Duration::from_secs(3600);
        assert_eq!(share.wait(moment(later)), None);
        share.spend(50_000_000);
        assert_eq!(share.wait(moment(later)), None);
        share.spend(1);
        let wait = share.wait(moment(later)).unwrap();
        assert!((10..11).contains(&wait.as_millis()), "{wait:?}");
        assert_eq!(share.wait(moment(later + wait)), None);
    }
}

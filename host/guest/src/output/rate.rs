//! The rate of log lines: a token bucket, and a count of dropped lines.

use std::time::{Duration, Instant};

/// How many seconds of lines may come at once.
const BURST: u32 = 10;

/// Time between two reports of dropped lines, which are lines themselves.
const REPORT_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Rate {
    pub(super) per_second: u32,
    /// How many lines may come now.
    lines: f64,
    /// When `lines` was last brought up to date.
    looked: Instant,
    /// How many lines were dropped since they were last taken.
    dropped: u64,
    /// When dropped lines were last taken for a report.
    reported: Option<Instant>,
}

impl Rate {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second, lines: most(per_second), looked: now, dropped: 0, reported: None }
    }

    /// Counts one line, and returns whether it is within the rate. If not, it counts as dropped.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.looked).as_secs_f64();
        self.looked = now;
        self.lines = (self.lines + passed * f64::from(self.per_second)).min(most(self.per_second));
        let is_within = self.lines >= 1.0;
        if is_within {
            self.lines -= 1.0;
        } else {
            self.dropped += 1;
        }
        is_within
    }

    pub(super) fn is_report_due(&self, now: Instant) -> bool {
        self.reported.is_none_or(|then| now.saturating_duration_since(then) >= REPORT_EVERY)
    }

    /// Returns the number of dropped lines for a report, and counts from 0 again.
    pub(super) fn take_dropped(&mut self, now: Instant) -> u64 {
        if self.dropped > 0 {
            self.reported = Some(now);
        }
        std::mem::take(&mut self.dropped)
    }
}

/// Returns how many lines may come at once.
fn most(per_second: u32) -> f64 {
    f64::from(per_second) * f64::from(BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gets_its_burst_and_then_its_rate_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut rate = Rate::new(100, start);
        let written = |rate: &mut Rate, now| (0..5000).filter(|_| rate.take(now)).count();
        assert_eq!(written(&mut rate, start), 1000);
        assert_eq!(written(&mut rate, start), 0);
        assert_eq!(written(&mut rate, start + Duration::from_secs(1)), 100);
        assert_eq!(written(&mut rate, start + Duration::from_secs(3600)), 1000);
        assert_eq!(rate.take_dropped(start), 4 * 5000 - 2100);
        assert_eq!(rate.take_dropped(start), 0);
    }

    #[test]
    fn dropped_lines_are_reported_at_once_and_then_every_ten_seconds() {
        let start = Instant::now();
        let mut rate = Rate::new(1, start);
        assert!(rate.is_report_due(start));
        assert_eq!(rate.take_dropped(start), 0);
        assert!(rate.is_report_due(start), "there was none");
        assert!((0..20).any(|_| !rate.take(start)));
        rate.take_dropped(start);
        assert!(!rate.is_report_due(start + Duration::from_secs(9)));
        assert!(rate.is_report_due(start + Duration::from_secs(10)));
    }
}

//! Durations as numbers.

use std::time::Duration;

/// A duration in nanoseconds. Saturates after more than 500 years.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

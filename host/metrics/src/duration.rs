//! Durations as numbers.

use std::time::Duration;

const IN_A_SECOND: u64 = 1_000_000_000;

/// A duration in nanoseconds. Saturates after more than 500 years.
#[inline]
pub fn nanoseconds(duration: Duration) -> u64 {
    // `as_nanos` has 128 bits, which cost a turn twice as much.
    duration.as_secs().saturating_mul(IN_A_SECOND).saturating_add(duration.subsec_nanos().into())
}

//! Durations as numbers.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

const IN_A_SECOND: u64 = 1_000_000_000;

/// When this process first asked.
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
    // `as_nanos` has 128 bits, which cost a turn twice as much.
    duration.as_secs().saturating_mul(IN_A_SECOND).saturating_add(duration.subsec_nanos().into())
}

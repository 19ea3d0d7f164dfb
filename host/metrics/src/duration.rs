//! Lengths of time as numbers.

use std::time::Duration;

/// A length of time as limits and their use count it; all that fits, where it is longer than 500 years.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

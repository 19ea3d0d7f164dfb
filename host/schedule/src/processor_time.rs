//! The processor time of a thread, which stands still while the process does.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weir_metrics::nanoseconds;

/// Nanoseconds that the processor has worked for this thread. Takes a system call.
pub(crate) fn processor_time() -> u64 {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).map(nanoseconds).unwrap_or_default()
}

//! A clock that advances with each reading, in place of libc's.
//!
//! Main's work depends on time in places: for example, it looks at its timers after extensions have run for a
//! tenth of a millisecond. Valgrind slows everything about fifty times, differently on each machine. With
//! this clock, each thing happens as often as without counting, and equally often in each run.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicI64, Ordering},
};

use rustix::time::Timespec;

/// Nanoseconds between readings: about as many as in an uncounted round trip.
const STEP: i64 = 250;

const SECOND: i64 = 1_000_000_000;

static READINGS: AtomicI64 = AtomicI64::new(0);

/// Begins at zero, long before the kernel's clock: the end of every wait has passed already.
#[expect(unsafe_code, reason = "what the standard library calls is found by its name")]
#[unsafe(no_mangle)]
extern "C" fn clock_gettime(_clock: c_int, time: &mut Timespec) -> c_int {
    let nanoseconds = STEP * READINGS.fetch_add(1, Ordering::Relaxed);
    *time = Timespec { tv_sec: nanoseconds / SECOND, tv_nsec: nanoseconds % SECOND };
    0
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_standard_library_reads_this_clock() {
        assert!(SystemTime::now() < SystemTime::UNIX_EPOCH + Duration::from_secs(60));
    }
}

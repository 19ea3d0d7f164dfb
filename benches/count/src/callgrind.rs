//! Counts the instructions of this program under valgrind's `callgrind`, with a clock that advances with each reading.

use std::{
    env,
    ffi::c_int,
    fs,
    io::ErrorKind,
    path::Path,
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicI64, Ordering},
    },
};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use rustix::time::{ClockId, Timespec};

use crate::{
    kept::Kept,
    work::{Artifacts, Case},
};

/// Operations of a case that are counted, divided by its weight.
const OPERATIONS: u32 = 8000;

/// Functions of which only the call is counted. How far libc searches for memory depends on what Main freed at start.
/// That differs between runs by up to four per cent of a number.
const NOT_INSIDE: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "free"];

/// Counts every case. Leaves a profile of each in `profiles`.
pub(crate) fn count(artifacts: &Artifacts, profiles: &Path) -> Result<Kept> {
    fs::create_dir_all(profiles).with_context(|| format!("cannot make `{}`", profiles.display()))?;
    let count = |&case: &Case| {
        eprintln!("  {}", case.name());
        let profile = profiles.join(format!("{}.callgrind", case.name()));
        let operations = OPERATIONS / case.weight();
        let counted = run(case, operations, artifacts, &profile)?;
        Ok((case.name(), u32::try_from(counted / u64::from(operations))?))
    };
    Case::value_variants().iter().map(count).collect()
}

fn run(case: Case, operations: u32, artifacts: &Artifacts, profile: &Path) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]);
    // What is counted until then goes to one file, and then to another: the second is what is between both marks.
    valgrind.arg("--dump-before=weir_count_mark").arg(format!("--callgrind-out-file={}", profile.display()));
    // Counting stops at the entry of such a function and resumes at its end.
    valgrind.args(NOT_INSIDE.map(|function| format!("--toggle-collect={function}")));
    // This follows those options, which turn counting off at the start.
    valgrind.arg("--collect-atstart=yes");
    valgrind.arg(env::current_exe()?).arg("work").args([case.name(), operations.to_string()]);
    valgrind.arg("--artifacts").arg(artifacts.dir());
    let output = match valgrind.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("`valgrind` is needed to count instructions: apt-get install valgrind")
        }
        output => output.context("cannot run `valgrind`")?,
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} under valgrind: {}\n{errors}", case.name(), output.status);
    let between = profile.with_added_extension("2");
    fs::rename(&between, profile).with_context(|| format!("cannot rename `{}`", between.display()))?;
    let text = fs::read_to_string(profile).with_context(|| format!("cannot read `{}`", profile.display()))?;
    total(&text).with_context(|| format!("`{}` has no total", profile.display()))
}

fn total(profile: &str) -> Option<u64> {
    profile.lines().rev().find_map(|line| line.strip_prefix("totals:")?.trim().parse().ok())
}

/// Nanoseconds between readings: about as many as in an uncounted round trip.
const STEP: i64 = 250;

const SECOND: i64 = 1_000_000_000;

/// What the clock shows first: what the kernel's shows then.
static BEGINNING: OnceLock<i64> = OnceLock::new();

static READINGS: AtomicI64 = AtomicI64::new(0);

/// Takes the place of libc's function. Main's work depends on time in places: for example, it looks at its timers after
/// extensions have run for a tenth of a millisecond. Valgrind slows everything about fifty times, differently on each
/// machine. With this clock, each thing happens as often as without counting, and equally often in each run.
///
/// The kernel ends a wait by its own clock, which is soon far ahead. Waits have to be long, or they end at once, and a
/// thread that does nothing but wait turns in a loop.
#[expect(unsafe_code, reason = "what the standard library calls is found by its name")]
#[unsafe(no_mangle)]
extern "C" fn clock_gettime(_clock: c_int, time: &mut Timespec) -> c_int {
    let beginning = BEGINNING.get_or_init(|| {
        let kernel = rustix::time::clock_gettime(ClockId::Monotonic);
        kernel.tv_sec * SECOND + kernel.tv_nsec
    });
    let nanoseconds = beginning + STEP * READINGS.fetch_add(1, Ordering::Relaxed);
    *time = Timespec { tv_sec: nanoseconds / SECOND, tv_nsec: nanoseconds % SECOND };
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_standard_library_reads_this_clock() {
        // No machine has run since 1990.
        assert!(SystemTime::now() < SystemTime::UNIX_EPOCH + Duration::from_secs(20 * 365 * 24 * 60 * 60));
    }

    #[test]
    fn the_total_is_the_sum_at_the_end_of_a_profile() {
        let profile = "version: 1\nevents: Ir\nsummary: 7\n\nfn=(1) main\n3 7\n\ntotals: 1234567\n";
        assert_eq!(total(profile), Some(1_234_567));
        assert_eq!(total("events: Ir\n"), None);
    }
}

//! Judges a version by its figures and by those of the version before. Pure: it has neither clock nor disk.

#[cfg(test)]
mod tests;

use std::time::Duration;

use weir_config::{UpdateConfig, bytes};
use weir_reports::{VersionFigures, VersionStatus};

/// Differences of latency below this are noise.
const LEAST_LATENCY: Duration = Duration::from_millis(1);

/// Differences of memory below this are noise: sixteen pages of WebAssembly.
const LEAST_MEMORY: u64 = 1 << 20;

/// Returns why a version on probation does not hold, or none if nothing speaks against it so far.
///
/// Too many failures always speak against it. Its figures count only if both versions have had enough requests.
pub(crate) fn fault(update: &UpdateConfig, now: &VersionStatus, before: &VersionStatus) -> Option<String> {
    if now.failures > u64::from(update.max_failures) {
        return Some(format!("it failed {}, and {} may be", times(now.failures), update.max_failures));
    }
    let enough = |version: &VersionStatus| version.figures.requests() >= update.min_requests;
    if !enough(now) || !enough(before) {
        return None;
    }
    let number = before.number;
    let (now, before) = (&now.figures, &before.figures);
    errors(update, now, before)
        .or_else(|| latency(update, now, before).map(|fault| format!("{fault} of version {number}")))
        .or_else(|| memory(update, now, before).map(|fault| format!("{fault} of version {number}")))
}

/// Faults of the extension count in full. Other errors count only above their rate in the version before: callers make
/// mistakes, and contracts have errors.
fn errors(update: &UpdateConfig, now: &VersionFigures, before: &VersionFigures) -> Option<String> {
    let requests = u128::from(now.requests());
    let usual = u128::from(before.other_errors()) * requests / u128::from(before.requests().max(1));
    let failed = u128::from(now.faults()) + u128::from(now.other_errors()).saturating_sub(usual);
    (failed * 10_000 > requests * u128::from(update.max_error_rate.basis_points())).then(|| {
        let usual = if usual > 0 { format!(" beside the usual {usual}") } else { String::new() };
        format!("{failed} of its {requests} requests failed{usual}, and {} may", update.max_error_rate)
    })
}

fn latency(update: &UpdateConfig, now: &VersionFigures, before: &VersionFigures) -> Option<String> {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let before = before.p99()?;
    // Above all bounds there is no number, and it is too slow by any measure that has one.
    let now = now.p99().unwrap_or(Duration::MAX);
    let allowed = Duration::from_nanos(update.max_latency.of(nanoseconds(before)));
    (now > allowed && now.saturating_sub(before) > LEAST_LATENCY).then(|| {
        let told = match now {
            Duration::MAX => "over a minute".to_owned(),
            now => shown(now),
        };
        format!(
            "the 99th percentile of its requests takes {told}, more than {} the {}",
            update.max_latency,
            shown(before)
        )
    })
}

fn memory(update: &UpdateConfig, now: &VersionFigures, before: &VersionFigures) -> Option<String> {
    let (now, before) = (now.memory, before.memory);
    (now > update.max_memory.of(before) && now.saturating_sub(before) > LEAST_MEMORY).then(|| {
        format!("its memory is {}, more than {} the {}", bytes(now), update.max_memory, bytes(before))
    })
}

/// How long a version on probation runs until it is next looked at: at 1, 2 and 4 of 64 parts of its time, and then at
/// each eighth. So a bad version is found soon, and a good one costs eleven looks.
pub(crate) fn next_look(prove_for: Duration, ran: Duration) -> Duration {
    let part = prove_for / 64;
    let first = [1, 2, 4].map(|parts| part * parts);
    let eighths = (1..8).map(|eighth| prove_for * eighth / 8);
    let mut looks = first.into_iter().chain(eighths).chain([prove_for]);
    looks.find(|look| *look > ran).unwrap_or(prove_for).saturating_sub(ran)
}

/// A duration in three digits at most, as in `9.4ms`.
fn shown(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1000 => format!("{micros}us"),
        1000..100_000 => format!("{:.1}ms", time.as_secs_f64() * 1000.0),
        100_000..1_000_000 => format!("{}ms", time.as_millis()),
        _ => format!("{:.1}s", time.as_secs_f64()),
    }
}

fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

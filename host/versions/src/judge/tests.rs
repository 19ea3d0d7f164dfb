use std::collections::BTreeMap;

use weir_reports::{Standing, VersionFigures};

use super::*;

/// A version whose requests each took so many microseconds, and ended in these errors.
fn version(number: u64, requests: &[(u64, u64)], failed: &[(&str, u64)], memory: u64) -> VersionStatus {
    let durations = weir_metrics::Durations::default();
    for (count, micros) in requests {
        (0..*count).for_each(|_| durations.add(micros * 1000));
    }
    let failed: BTreeMap<_, _> = failed.iter().map(|(case, count)| ((*case).to_owned(), *count)).collect();
    VersionStatus {
        number,
        hash: String::new(),
        standing: Standing::Probation,
        since: std::time::UNIX_EPOCH,
        ran: Duration::ZERO,
        failures: 0,
        figures: VersionFigures { failed, durations: durations.snapshot(), memory },
        reason: None,
    }
}

fn judged(now: &VersionStatus, before: &VersionStatus) -> Option<String> {
    fault(&UpdateConfig::default(), now, before)
}

#[test]
fn faults_count_in_full_and_other_errors_above_the_usual_rate() {
    let before = version(1, &[(1000, 10)], &[("handler", 100), ("timeout", 100)], 0);
    let holds = |failed: &[(&str, u64)]| judged(&version(2, &[(200, 10)], failed, 0), &before);
    assert_eq!(holds(&[("handler", 30)]), None);
    assert_eq!(holds(&[("timeout", 10)]), None);
    let one_more = holds(&[("handler", 31)]).unwrap();
    assert_eq!(one_more, "11 of its 200 requests failed beside the usual 20, and 5% may");
    assert!(holds(&[("timeout", 11)]).is_some());
    assert!(holds(&[("trapped", 6), ("invalid", 25)]).is_some());
}

#[test]
fn with_few_requests_of_either_version_failures_alone_decide() {
    let many = |number| version(number, &[(100, 10)], &[("trapped", 100)], 0);
    let few = |number| version(number, &[(99, 10)], &[("trapped", 99)], 0);
    assert_eq!(judged(&few(2), &many(1)), None);
    assert_eq!(judged(&many(2), &few(1)), None);
    let failed = VersionStatus { failures: 2, ..few(2) };
    assert_eq!(judged(&failed, &many(1)).unwrap(), "it failed 2 times, and 1 may be");
    assert_eq!(judged(&VersionStatus { failures: 1, ..few(2) }, &many(1)), None);
}

#[test]
fn three_times_as_slow_is_refused_and_twice_is_not_wherever_the_buckets_lie() {
    for micros in (1_000..200_000).step_by(997) {
        let before = version(1, &[(100, micros)], &[], 0);
        assert_eq!(judged(&version(2, &[(100, 2 * micros)], &[], 0), &before), None, "{micros}");
        let slow = version(2, &[(98, micros), (2, 3 * micros)], &[], 0);
        assert!(judged(&slow, &before).unwrap().contains("99th percentile"), "{micros}");
        assert_eq!(judged(&version(2, &[(99, micros), (1, 9 * micros)], &[], 0), &before), None, "{micros}");
    }
}

#[test]
fn noise_of_a_fast_or_small_version_does_not_count() {
    let before = version(1, &[(100, 10)], &[], 65_536);
    assert_eq!(judged(&version(2, &[(100, 700)], &[], 1_000_000), &before), None);
    let slow = judged(&version(2, &[(100, 1_200)], &[], 0), &before).unwrap();
    assert_eq!(slow, "the 99th percentile of its requests takes 1.6ms, more than 2x the 12us of version 1");
    let large = judged(&version(2, &[(100, 10)], &[], 3 << 20), &before).unwrap();
    assert_eq!(large, "its memory is 3 MiB, more than 2x the 64 KiB of version 1");
    let endless = judged(&version(2, &[(100, 100_000_000)], &[], 0), &before).unwrap();
    assert!(endless.contains("over a minute"), "{endless}");
}

#[test]
fn looks_are_close_at_first_and_end_at_the_end() {
    let prove_for = Duration::from_secs(640);
    let (mut ran, mut looks) = (Duration::ZERO, Vec::new());
    while ran < prove_for {
        ran += next_look(prove_for, ran);
        looks.push(ran.as_secs());
    }
    assert_eq!(looks, [10, 20, 40, 80, 160, 240, 320, 400, 480, 560, 640]);
    assert_eq!(next_look(prove_for, prove_for), Duration::ZERO);
}

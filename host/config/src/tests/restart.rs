//! Restarts and reloads: defaults, contradictions, and unreachable quarantine.

use std::time::Duration;

use super::*;
use crate::{ExtensionConfig, ReloadMode, RestartConfig, RestartPolicy};

fn parsed(entries: &str) -> ExtensionConfig {
    let mut config = parse(&document(entries)).unwrap();
    config.extensions.remove(0)
}

fn document(entries: &str) -> String {
    format!("[[extension]]\nid = 'a'\npath = 'a.wasm'\n{entries}")
}

#[test]
fn what_is_left_out_has_its_default() {
    let extension = parsed("restart = { policy = 'always', failures = 3 }");
    let expected = RestartConfig { policy: RestartPolicy::Always, failures: 3, ..RestartConfig::default() };
    assert_eq!((extension.restart, extension.reload), (expected, ReloadMode::StopFirst));
    let written = "restart = { policy = 'on-failure', backoff = '100ms', max-backoff = '1m', failures = 5, \
                   window = '1m' }\nreload = 'stop-first'";
    assert_eq!(parsed(written), parsed(""));
    assert_eq!(parsed(""), ExtensionConfig::new("a".parse().unwrap(), golden().join("a.wasm")));
}

#[test]
fn delays_double_up_to_the_longest() {
    let restart = parsed("restart = { backoff = '100ms', max-backoff = '1s' }").restart;
    let delays = [1, 2, 3, 4, 5, 32, 33, u32::MAX].map(|failures| restart.longest_delay(failures));
    assert_eq!(delays, [100, 200, 400, 800, 1000, 1000, 1000, 1000].map(Duration::from_millis));
}

#[test]
fn that_quarantine_never_comes_is_a_warning() {
    let warnings = |restart: &str| parse(&document(&format!("restart = {restart}"))).unwrap().warnings();
    // 50 + 100 + 200 + 400 + 500 + 500 ms.
    let delays = "failures = 7, backoff = '100ms', max-backoff = '1s'";
    assert_eq!(
        warnings(&format!("{{ {delays}, window = '1750ms' }}")),
        ["`a` would never be quarantined: the delays between 7 failures (`restart.failures`) come to 1s \
             750ms at least, and `restart.window` is 1s 750ms: raise `window`, or lower `failures`, \
             `backoff` or `max-backoff`"]
    );
    assert_eq!(warnings(&format!("{{ {delays}, window = '1751ms' }}")), [""; 0]);
    assert_eq!(warnings(&format!("{{ {delays}, window = '1ms', policy = 'never' }}")), [""; 0]);
    assert_eq!(warnings(&format!("{{ {delays}, window = '1ms', policy = 'always' }}")).len(), 1);
    // One failure has no delays in between.
    assert_eq!(warnings("{ failures = 1, window = '1ms' }"), [""; 0]);
    assert_eq!(warnings("{}"), [""; 0]);
    let longest = "{ failures = 1000, backoff = '1day', max-backoff = '1day', window = '7days' }";
    let [warning] = &warnings(longest)[..] else { panic!() };
    assert!(warning.contains("1year 4months"), "{warning}");
}

#[test]
fn values_that_are_wrong_are_no_reason_to_warn() {
    let mut config = parse(&document("")).unwrap();
    config.extensions[0].restart.failures = u32::MAX;
    config.extensions[0].restart.backoff = Duration::MAX;
    assert_eq!(config.warnings(), [""; 0]);
}

//! The version that served comes back if a new one does not become ready, whatever its state.

use std::time::Duration;

use weir_host::{
    Control, ExtensionConfig, Main,
    config::{ReloadMode, RestartPolicy},
    control::ExtensionState,
};

use super::{
    reload::{BOTH, Components, TRAPS, hash, not_reloaded},
    support::{Gate, config, puppet_with, reached, set, start, taken, tell, until},
};

const HOUR: Duration = Duration::from_secs(3600);
const UNREACHABLE: &str = "trapped: wasm `unreachable` instruction executed";

fn state(control: &Control, id: &str) -> ExtensionState {
    control.status(id).unwrap().state
}

/// Waits long for its restart; quarantined by its second failure.
fn backs_off(a: &mut ExtensionConfig) {
    a.restart.policy = RestartPolicy::OnFailure;
    (a.restart.backoff, a.restart.max_backoff) = (HOUR, HOUR);
    a.restart.failures = 2;
}

/// `a`, which is reloaded in this mode and starts with this command.
fn starting(mode: ReloadMode, start: &str, change: impl FnOnce(&mut ExtensionConfig)) -> ExtensionConfig {
    puppet_with("a", |a| {
        a.reload = mode;
        set(a, "start", start);
        change(a);
    })
}

async fn traps(main: &Main) {
    assert_eq!(tell(main, "a", "trap").await, Err("Trapped".to_owned()));
}

async fn serves(main: &Main) {
    assert_eq!(tell(main, "a", "echo on").await, Ok("on".to_owned()));
}

fn failure(report: &weir_host::control::ReloadReport) -> &str {
    assert_eq!((report.changed.len(), report.failed.len()), (0, 1), "{report:?}");
    &report.failed.first().unwrap().reason
}

#[tokio::test]
async fn one_that_backs_off_is_what_a_bad_version_leaves_behind() {
    let components = Components::new();
    let main = start(vec![components.puppet(backs_off)]).await;
    let old = hash(&main);
    traps(&main).await;
    reached(&main, "a", ExtensionState::BackingOff).await;
    components.put_text(TRAPS);
    let again = format!("{UNREACHABLE}; the version before serves again");
    assert_eq!(main.control().reload_extension("a").await, not_reloaded(&again));
    serves(&main).await;
    assert_eq!(hash(&main), old);
    // The first failure counts, that of the new version does not.
    traps(&main).await;
    reached(&main, "a", ExtensionState::Quarantined).await;
}

#[tokio::test]
async fn one_that_backs_off_is_what_a_bad_configuration_leaves_behind() {
    for mode in BOTH {
        let with = |start| starting(mode, start, backs_off);
        let main = start(vec![with("echo")]).await;
        traps(&main).await;
        reached(&main, "a", ExtensionState::BackingOff).await;
        let report = main.control().reload_with(config(vec![with("error broken")])).await.unwrap();
        assert_eq!(failure(&report), "broken; the version before serves again");
        serves(&main).await;
    }
}

#[tokio::test]
async fn one_that_never_served_is_exchanged_for_good() {
    let components = Components::new();
    let extension = components.puppet(|a| {
        backs_off(a);
        a.restart.failures = 3;
    });
    components.put_text(TRAPS);
    let main = start(vec![extension]).await;
    reached(&main, "a", ExtensionState::BackingOff).await;
    let first = hash(&main);
    components.put_text(&TRAPS.replace("unreachable", "unreachable nop"));
    assert_eq!(main.control().reload_extension("a").await, not_reloaded(UNREACHABLE));
    let status = main.control().status("a").unwrap();
    assert_eq!((status.state, status.failures.len()), (ExtensionState::BackingOff, 2));
    assert_ne!(hash(&main), first);
}

/// As with an unreachable dependency: no version can be more than interrupted.
#[tokio::test]
async fn one_that_was_only_ever_interrupted_is_exchanged_for_one_that_is_interrupted() {
    for mode in BOTH {
        let with = |reason: &str| starting(mode, &format!("interrupted {reason}"), |_| {});
        let main = start(vec![with("no network")]).await;
        for reason in ["still no network", "no network yet"] {
            let report = main.control().reload_with(config(vec![with(reason)])).await.unwrap();
            assert_eq!((report.changed.len(), report.failed.len()), (1, 0), "{report:?}");
            let status = main.control().status("a").unwrap();
            let shown = (status.state, status.reason.as_deref(), status.failures.len());
            assert_eq!(shown, (ExtensionState::Interrupted, Some(reason), 0));
        }
    }
}

#[tokio::test]
async fn one_that_was_only_ever_interrupted_does_not_come_back() {
    for mode in BOTH {
        let with = |start| starting(mode, start, |_| {});
        let main = start(vec![with("interrupted no network")]).await;
        let report = main.control().reload_with(config(vec![with("error broken")])).await.unwrap();
        assert_eq!(failure(&report), "broken");
        assert_eq!(state(main.control(), "a"), ExtensionState::Failed);
    }
}

#[tokio::test]
async fn one_that_is_still_starting_and_never_served_does_not_come_back() {
    for mode in BOTH {
        let gate = Gate::new();
        let with = |start| {
            starting(mode, start, |a| {
                a.autostart = false;
                a.wants = vec!["gate@1".parse().unwrap()];
            })
        };
        let main = gate.start(vec![with("call gate@1 pass")]).await;
        let control = main.control();
        let bad = Gate::config(vec![with("error broken")]);
        let rest = async {
            reached(&main, "a", ExtensionState::Starting).await;
            let drained = async {
                reached(&main, "a", ExtensionState::Draining).await;
                gate.open(1);
            };
            tokio::join!(control.reload_with(bad), drained).0
        };
        let (_not_started, report) = tokio::join!(control.start("a"), rest);
        assert_eq!(failure(&report.unwrap()), "broken");
        assert_eq!(state(control, "a"), ExtensionState::Failed);
    }
}

#[tokio::test]
async fn a_restart_that_a_bad_version_meets_starts_what_has_served() {
    let gate = Gate::new();
    let components = Components::new();
    let a = components.puppet(|a| {
        a.wants = vec!["gate@1".parse().unwrap()];
        set(a, "stop", "call gate@1 pass");
    });
    let main = gate.start(vec![a]).await;
    let old = hash(&main);
    let control = main.control();
    let rest = async {
        reached(&main, "a", ExtensionState::Draining).await;
        components.put_text(TRAPS);
        let open = async {
            until(|| control.status("a").unwrap().hash.is_some_and(|hash| hash != old)).await;
            gate.open(100);
        };
        tokio::join!(control.reload_extension("a"), open).0
    };
    let (_restarted, reloaded) = tokio::join!(control.restart("a"), rest);
    assert_eq!(reloaded, not_reloaded(&format!("{UNREACHABLE}; the version before serves again")));
    serves(&main).await;
    assert_eq!(hash(&main), old);
}

#[tokio::test]
async fn one_that_waits_for_what_it_requires_is_what_a_bad_version_leaves_behind() {
    let gate = Gate::new();
    let components = Components::new();
    let b = puppet_with("b", |b| {
        b.wants = vec!["gate@1".parse().unwrap()];
        set(b, "start", "call gate@1 pass");
    });
    let a = components.puppet(|a| {
        backs_off(a);
        (a.restart.backoff, a.restart.max_backoff) = (Duration::from_millis(1), Duration::from_millis(1));
        a.requires = vec!["b@1".parse().unwrap()];
    });
    gate.open(1);
    let main = gate.start(vec![a, b]).await;
    let control = main.control();
    let old = hash(&main);
    components.put_text(TRAPS);
    let rest = async {
        reached(&main, "b", ExtensionState::Starting).await;
        traps(&main).await;
        reached(&main, "a", ExtensionState::Loaded).await;
        let open = async {
            until(|| control.status("a").unwrap().hash.is_none_or(|hash| hash != old)).await;
            gate.open(1);
        };
        tokio::join!(control.reload_extension("a"), open).0
    };
    let (_, reloaded) = tokio::join!(control.restart("b"), rest);
    assert_eq!(reloaded, not_reloaded(&format!("{UNREACHABLE}; the version before serves again")));
    serves(&main).await;
    assert_eq!(hash(&main), old);
}

#[tokio::test]
async fn a_version_that_is_interrupted_and_never_ready_leaves_the_old_one_serving() {
    for mode in BOTH {
        let main = start(vec![puppet_with("a", |a| a.reload = mode)]).await;
        let new = starting(mode, "interrupted no network", |a| {
            a.limits.ready_timeout = Duration::from_millis(500);
        });
        let report = main.control().reload_with(config(vec![new])).await.unwrap();
        let serves_now = if mode == ReloadMode::Overlap { "serves on" } else { "serves again" };
        let late = format!("not ready within `ready-timeout` of 500ms; the version before {serves_now}");
        assert_eq!(failure(&report), late);
        serves(&main).await;
        assert_eq!(state(main.control(), "a"), ExtensionState::Ready);
    }
}

#[tokio::test]
async fn a_version_that_traps_after_it_was_interrupted_leaves_the_old_one_serving() {
    for mode in BOTH {
        let with = |start| starting(mode, start, |_| {});
        let main = start(vec![with("echo")]).await;
        let new = with("all interrupted no network; trap");
        let report = main.control().reload_with(config(vec![new])).await.unwrap();
        assert!(failure(&report).starts_with("trapped: "), "{report:?}");
        serves(&main).await;
    }
}

#[tokio::test]
async fn a_reload_is_done_when_the_new_version_is_ready_and_no_sooner() {
    for mode in BOTH {
        let gate = Gate::new();
        let with = |start| starting(mode, start, |a| a.wants = vec!["gate@1".parse().unwrap()]);
        let main = gate.start(vec![with("echo")]).await;
        let control = main.control().clone();
        let start = "all interrupted warming up; call gate@1 pass; call gate@1 pass; ready";
        let new = Gate::config(vec![with(start)]);
        gate.open(1);
        let reload = tokio::spawn({
            let control = control.clone();
            async move { control.reload_with(new).await }
        });
        until(|| gate.is_used_up()).await;
        // Its earlier notices have been heard.
        control.ping().await.unwrap();
        match mode {
            ReloadMode::Overlap => serves(&main).await,
            _ => {
                let status = control.status("a").unwrap();
                let shown = (status.state, status.reason.as_deref());
                assert_eq!(shown, (ExtensionState::Interrupted, Some("warming up")));
            }
        }
        assert!(!reload.is_finished() && control.is_reloading(), "it has never been ready");
        gate.open(1);
        assert_eq!(reload.await.unwrap().unwrap().changed.len(), 1);
        assert!(!control.is_reloading());
        serves(&main).await;
    }
}

#[tokio::test]
async fn what_a_version_subscribed_to_that_did_not_come_up_does_not_reach_the_old_one() {
    for mode in BOTH {
        let with = |start| {
            starting(mode, start, |a| {
                a.subscribes = vec!["new".parse().unwrap(), "old".parse().unwrap()];
            })
        };
        let main = start(vec![with("echo")]).await;
        let number = tell(&main, "a", "subscribe old").await.unwrap();
        let bad = with("all subscribe old; subscribe new; trap");
        let report = main.control().reload_with(config(vec![bad])).await.unwrap();
        assert!(failure(&report).starts_with("trapped: "), "{report:?}");
        assert_eq!(main.client().publish("new", "hello").await.unwrap().delivered, 0);
        assert_eq!(main.client().publish("old", "hello").await.unwrap().delivered, 1);
        assert_eq!(tell(&main, "a", "subscribe old").await.unwrap(), number);
        taken(&main, "a").await;
        assert_eq!(tell(&main, "a", "heard").await.unwrap(), "event:  1 0 hello");
    }
}

#[tokio::test]
async fn a_version_that_may_subscribe_to_less_ends_subscriptions_when_it_is_ready_and_no_sooner() {
    for mode in BOTH {
        let gate = Gate::new();
        let with = |change: fn(&mut ExtensionConfig)| {
            puppet_with("a", |a| {
                a.reload = mode;
                a.wants = vec!["gate@1".parse().unwrap()];
                change(a);
            })
        };
        let changed = |change: fn(&mut ExtensionConfig)| Gate::config(vec![with(change)]);
        let old = with(|a| a.subscribes = vec!["t".parse().unwrap()]);
        let main = gate.start(vec![old]).await;
        let number = tell(&main, "a", "subscribe t").await.unwrap();
        gate.open(1);
        let bad = changed(|a| set(a, "start", "all call gate@1 pass; call gate@1 pass; trap"));
        let meanwhile = async {
            until(|| gate.is_used_up()).await;
            let delivered = main.client().publish("t", "meanwhile").await.unwrap().delivered;
            gate.open(1);
            delivered
        };
        let (report, delivered) = tokio::join!(main.control().reload_with(bad), meanwhile);
        assert!(failure(&report.unwrap()).starts_with("trapped: "));
        assert_eq!(delivered, 1);
        assert_eq!(tell(&main, "a", "subscribe t").await.unwrap(), number);
        taken(&main, "a").await;
        assert_eq!(tell(&main, "a", "heard").await.unwrap(), "event:  1 0 meanwhile");

        let report = main.control().reload_with(changed(|_| {})).await.unwrap();
        assert_eq!(report.changed.len(), 1, "{report:?}");
        assert_eq!(main.client().publish("t", "after").await.unwrap().delivered, 0);
    }
}

/// The successor takes over from a dying one, and dies itself.
#[tokio::test]
async fn what_served_comes_back_where_both_versions_die_though_its_file_has_changed() {
    let gate = Gate::new();
    let components = Components::new();
    let with = |start: &'static str| {
        components.puppet(|a| {
            a.reload = ReloadMode::Overlap;
            a.wants = vec!["gate@1".parse().unwrap()];
            set(a, "start", start);
        })
    };
    let main = gate.start(vec![with("echo")]).await;
    let old = hash(&main);
    let bad = Gate::config(vec![with("all call gate@1 pass; call gate@1 pass; trap")]);
    gate.open(1);
    let die = async {
        until(|| gate.is_used_up()).await;
        components.put_text(TRAPS);
        traps(&main).await;
        reached(&main, "a", ExtensionState::Starting).await;
        gate.open(1);
    };
    let (report, ()) = tokio::join!(main.control().reload_with(bad), die);
    let report = report.unwrap();
    assert!(failure(&report).ends_with("; the version before serves again"), "{report:?}");
    serves(&main).await;
    assert_eq!(hash(&main), old);
    let status = main.control().status("a").unwrap();
    let then: Vec<_> = status.failures.iter().map(|failure| failure.then).collect();
    assert_eq!(then, [ExtensionState::Starting, ExtensionState::Loaded], "what came of each of the two");
}

#[tokio::test]
async fn one_that_finishes_while_its_successor_starts_is_not_said_to_have_failed() {
    let gate = Gate::new();
    let with = |change: fn(&mut ExtensionConfig)| {
        puppet_with("a", |a| {
            a.reload = ReloadMode::Overlap;
            a.wants = vec!["gate@1".parse().unwrap()];
            change(a);
        })
    };
    let main = gate.start(vec![with(|_| {})]).await;
    let new = Gate::config(vec![with(|a| set(a, "start", "all call gate@1 pass; call gate@1 pass"))]);
    gate.open(1);
    let finish = async {
        until(|| gate.is_used_up()).await;
        let _gone = tell(&main, "a", "exit 0").await;
        reached(&main, "a", ExtensionState::Stopped).await;
        gate.open(1);
    };
    let (report, ()) = tokio::join!(main.control().reload_with(new), finish);
    assert_eq!(failure(&report.unwrap()), "the version before has finished");
}

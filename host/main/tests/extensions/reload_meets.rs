//! Reloads during a stop, start, restart, death or shutdown, and versions that require each other.

use std::{future::Future, time::Duration};

use futures_util::FutureExt;
use tokio::time::timeout;
use weir_host::{
    Control, Error, Main,
    config::{ReloadMode, RestartPolicy},
    control::ExtensionState,
};

use super::{
    reload::{Components, TRAPS},
    support::{Gate, config, puppet, puppet_with, reached, set, start, tell, until},
};

const LONG: Duration = Duration::from_secs(15);
const HOUR: Duration = Duration::from_secs(3600);

async fn within<T>(what: impl Future<Output = T>) -> Option<T> {
    timeout(LONG, what).await.ok()
}

fn state(control: &Control, id: &str) -> ExtensionState {
    control.status(id).unwrap().state
}

fn restarts(main: &Main, id: &str) -> u64 {
    main.control().status(id).unwrap().restarts
}

/// Ends Main, stopping what hangs by hand.
async fn shuts_down(main: Main, ids: &[&str]) -> bool {
    let control = main.control().clone();
    control.begin_shutdown().await;
    let ended = within(control.ended()).await.is_some();
    for id in ids {
        let _stopped = within(control.stop(id)).await;
    }
    main.shutdown().await.unwrap();
    ended
}

#[tokio::test]
async fn one_that_is_removed_while_it_is_loaded_takes_nothing_from_its_heir() {
    let components = Components::new();
    let main = start(vec![components.puppet(|_| {})]).await;
    let control = main.control();
    components.put(2);
    let heir = puppet_with("heir", |h| {
        h.fulfills = vec!["a@1".parse().unwrap()];
        set(h, "contract", "a@1");
    });
    let (_reloaded, report) =
        tokio::join!(control.reload_extension("a"), control.reload_with(config(vec![heir])));
    assert_eq!(report.unwrap().failed, vec![]);
    assert_eq!(tell(&main, "a", "own-name").await, Ok("heir".to_owned()));
}

#[tokio::test]
async fn a_shutdown_ends_while_one_that_failed_is_loaded_anew() {
    let components = Components::new();
    let extension = components.puppet(|_| {});
    components.put_text(TRAPS);
    let main = start(vec![extension]).await;
    assert_eq!(state(main.control(), "a"), ExtensionState::Failed);
    components.put(2);
    let control = main.control().clone();
    let reload = tokio::spawn(async move { control.reload_extension("a").await });
    tokio::task::yield_now().await;
    assert!(shuts_down(main, &["a"]).await, "it was started after all others had been stopped");
    let _result = reload.await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_where_two_versions_require_each_other() {
    let components = Components::new();
    let old = vec![components.puppet(|a| a.requires = vec!["b@1".parse().unwrap()]), puppet("b")];
    let main = start(old).await;
    components.put(1);
    let a = components.puppet(|_| {});
    components.put_text("(component)");
    let b = puppet_with("b", |b| b.requires = vec!["a@1".parse().unwrap()]);
    let report = main.control().reload_with(config(vec![a, b])).await.unwrap();
    assert_eq!((report.changed.len(), report.failed.len()), (1, 1), "{report:?}");
    assert!(shuts_down(main, &["a", "b"]).await, "neither is stopped before the other");
}

#[tokio::test]
async fn a_version_that_comes_back_does_not_wait_for_one_that_waits_for_it() {
    let gate = Gate::new();
    let components = Components::new();
    let slow = |b: &mut weir_host::ExtensionConfig| {
        b.wants = vec!["gate@1".parse().unwrap()];
        set(b, "stop", "call gate@1 pass");
    };
    let old = vec![components.puppet(|a| a.requires = vec!["b@1".parse().unwrap()]), puppet_with("b", slow)];
    let main = gate.start(old).await;
    let a = components.puppet(|_| {});
    components.put_text(TRAPS);
    let b = puppet_with("b", |b| {
        slow(b);
        b.requires = vec!["a@1".parse().unwrap()];
    });
    let new = Gate::config(vec![a, b]);
    let control = main.control();
    let open = async {
        until(|| !control.status("a").unwrap().failures.is_empty()).await;
        gate.open(100);
    };
    let (report, ()) = tokio::join!(within(control.reload_with(new)), open);
    let states = (state(control, "a"), state(control, "b"));
    assert!(report.is_some(), "the reload never ends: {states:?}");
}

#[tokio::test]
async fn a_reload_ends_though_its_extension_is_restarted_while_the_successor_starts() {
    let gate = Gate::new();
    let components = Components::new();
    let a = components.puppet(|a| {
        a.reload = ReloadMode::Overlap;
        a.wants = vec!["gate@1".parse().unwrap()];
        set(a, "start", "call gate@1 pass");
    });
    gate.open(1);
    let main = gate.start(vec![a]).await;
    components.put(2);
    let control = main.control();
    let rest = async {
        until(|| restarts(&main, "a") == 1).await;
        let open = async {
            until(|| restarts(&main, "a") == 2).await;
            gate.open(1);
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            gate.open(1);
        };
        tokio::join!(control.restart("a"), open).0
    };
    let (reloaded, restarted) = tokio::join!(within(control.reload_extension("a")), rest);
    assert_eq!(restarted, Ok(()));
    assert!(reloaded.is_some(), "the reload never ends");
}

#[tokio::test]
async fn a_stop_and_a_start_while_the_successor_starts_leave_the_extension_running() {
    let gate = Gate::new();
    let with = |change: fn(&mut weir_host::ExtensionConfig)| {
        puppet_with("a", |a| {
            a.reload = ReloadMode::Overlap;
            a.wants = vec!["gate@1".parse().unwrap()];
            change(a);
        })
    };
    let main = gate.start(vec![with(|_| {})]).await;
    let control = main.control();
    let new = Gate::config(vec![with(|a| set(a, "start", "call gate@1 pass"))]);
    let rest = async {
        until(|| restarts(&main, "a") == 1).await;
        let stop = within(control.stop("a"));
        let start = async {
            let started = control.start("a").await;
            gate.open(1);
            started
        };
        tokio::join!(stop, start)
    };
    let (_reloaded, (stopped, started)) = tokio::join!(within(control.reload_with(new)), rest);
    assert_eq!(started, Ok(()));
    let status = control.status("a").unwrap();
    assert_eq!((stopped, status.state, status.failures), (Some(Ok(())), ExtensionState::Ready, vec![]));
}

#[tokio::test]
async fn a_quarantined_one_that_comes_back_is_no_provider_at_once() {
    let quarantined = || {
        puppet_with("a", |a| {
            a.restart.policy = RestartPolicy::OnFailure;
            a.restart.failures = 1;
        })
    };
    let main = start(vec![quarantined(), puppet("b")]).await;
    let control = main.control();
    assert_eq!(tell(&main, "a", "trap").await, Err("Trapped".to_owned()));
    reached(&main, "a", ExtensionState::Quarantined).await;
    control.reload_with(config(vec![puppet("b")])).await.unwrap();
    control.reload_with(config(vec![quarantined(), puppet("b")])).await.unwrap();
    assert_eq!(state(control, "a"), ExtensionState::Quarantined);
    let told = within(tell(&main, "a", "echo on")).await;
    assert!(told.is_some(), "the request waits for nobody");
}

#[tokio::test]
async fn a_successor_that_was_interrupted_before_it_was_ready_is_ready() {
    let with = |change: fn(&mut weir_host::ExtensionConfig)| {
        puppet_with("a", |a| {
            a.reload = ReloadMode::Overlap;
            change(a);
        })
    };
    let main = start(vec![with(|_| {})]).await;
    let new = config(vec![with(|a| set(a, "start", "all interrupted warming up; ready"))]);
    let report = main.control().reload_with(new).await.unwrap();
    assert_eq!(report.changed.len(), 1, "{report:?}");
    assert_eq!(tell(&main, "a", "echo on").await, Ok("on".to_owned()));
}

#[tokio::test]
async fn a_version_that_requires_what_does_not_run_does_not_end_the_one_that_serves() {
    let idle = || puppet_with("b", |b| b.autostart = false);
    let main = start(vec![puppet("a"), idle()]).await;
    let new = puppet_with("a", |a| a.requires = vec!["b@1".parse().unwrap()]);
    let report = main.control().reload_with(config(vec![new, idle()])).await.unwrap();
    let status = main.control().status("a").unwrap();
    assert_eq!(status.state, ExtensionState::Ready, "{:?}; {report:?}", status.reason);
}

#[tokio::test]
async fn a_new_one_waits_for_what_a_changed_one_is_to_fulfil() {
    let main = start(vec![puppet("b")]).await;
    let b = puppet_with("b", |b| {
        b.fulfills.push("x@1".parse().unwrap());
        set(b, "start", "serve x@1");
    });
    let n = puppet_with("n", |n| {
        n.requires = vec!["x@1".parse().unwrap()];
        set(n, "start", "call x@1 run echo on");
    });
    let report = main.control().reload_with(config(vec![n, b])).await.unwrap();
    assert_eq!(report.failed, vec![]);
}

#[tokio::test]
async fn a_start_reads_the_component_of_one_that_backs_off_anew() {
    for is_stopped in [false, true] {
        let components = Components::new();
        let extension = components.puppet(|a| {
            a.restart.policy = RestartPolicy::OnFailure;
            (a.restart.backoff, a.restart.max_backoff) = (HOUR, HOUR);
        });
        components.put_text(TRAPS);
        let main = start(vec![extension]).await;
        reached(&main, "a", ExtensionState::BackingOff).await;
        components.put(2);
        if is_stopped {
            main.control().stop("a").await.unwrap();
        }
        let started = main.control().start("a").await;
        assert_eq!(started, Ok(()), "stopped before: {is_stopped}");
    }
}

#[tokio::test]
async fn what_waits_is_served_by_the_successor_that_is_there_when_an_instance_dies() {
    let gate = Gate::new();
    let components = Components::new();
    let a = components.puppet(|a| {
        a.reload = ReloadMode::Overlap;
        a.wants = vec!["gate@1".parse().unwrap()];
        a.restart.policy = RestartPolicy::OnFailure;
        (a.restart.backoff, a.restart.max_backoff) = (HOUR, HOUR);
        set(a, "start", "call gate@1 pass");
    });
    gate.open(1);
    let main = gate.start(vec![a]).await;
    components.put(2);
    let die = async {
        until(|| restarts(&main, "a") == 1).await;
        let open = async {
            reached(&main, "a", ExtensionState::Starting).await;
            gate.open(1);
        };
        // Its work gives the second time to come.
        tokio::join!(tell(&main, "a", "all burn 3000000; trap"), tell(&main, "a", "echo waited"), open)
    };
    let (reloaded, (_, waited, ())) = tokio::join!(main.control().reload_extension("a"), die);
    assert_eq!((reloaded, waited), (Ok(()), Ok("waited".to_owned())));
}

#[tokio::test]
async fn a_reload_that_meets_a_restart_says_what_came_of_the_new_version() {
    let gate = Gate::new();
    let components = Components::new();
    let a = components.puppet(|a| {
        a.wants = vec!["gate@1".parse().unwrap()];
        set(a, "stop", "call gate@1 pass");
    });
    let main = gate.start(vec![a]).await;
    components.put_text(TRAPS);
    let control = main.control();
    let restart = async {
        let open = async {
            until(|| state(control, "a") == ExtensionState::Draining).await;
            tokio::time::timeout(Duration::from_secs(3), std::future::pending::<()>()).await.unwrap_err();
            gate.open(100);
        };
        tokio::join!(control.restart("a"), open).0
    };
    let (reloaded, restarted) = tokio::join!(control.reload_extension("a"), restart);
    println!("{reloaded:?} {restarted:?}");
    assert!(reloaded.is_err(), "{reloaded:?}, {restarted:?}");
}

#[tokio::test]
async fn what_a_predecessor_gives_back_to_an_extension_that_has_failed_is_answered() {
    let gate = Gate::new();
    let components = Components::new();
    let a = components.puppet(|a| {
        a.reload = ReloadMode::Overlap;
        a.wants = vec!["gate@1".parse().unwrap()];
        set(a, "receive", "in-order");
    });
    let main = gate.start(vec![a]).await;
    components.put(2);
    let control = main.control();
    let fail = async {
        until(|| control.status("a").unwrap().received == 3).await;
        let die = async {
            until(|| restarts(&main, "a") == 1).await;
            let kill = async { while tell(&main, "a", "trap").await != Err("Trapped".to_owned()) {} };
            kill.await;
            reached(&main, "a", ExtensionState::Failed).await;
            gate.open(1);
        };
        tokio::join!(within(control.reload_extension("a")), die).0
    };
    let (_, in_hand, behind, reloaded) = tokio::join!(
        tell(&main, "a", "burn 3000000"),
        tell(&main, "a", "all call gate@1 pass; trap"),
        within(tell(&main, "a", "echo behind")),
        fail
    );
    assert_eq!(in_hand, Err("Trapped".to_owned()));
    let depth = control.status("a").unwrap().inbox_messages;
    assert!(behind.is_some(), "it waits for nobody: {depth} in the inbox, {reloaded:?}");
}

#[tokio::test]
async fn a_stop_that_a_start_follows_is_answered() {
    let gate = Gate::new();
    let components = Components::new();
    let a = components.puppet(|a| {
        a.reload = ReloadMode::Overlap;
        a.wants = vec!["gate@1".parse().unwrap()];
    });
    let main = gate.start(vec![a]).await;
    components.put(2);
    let control = main.control();
    let rest = async {
        until(|| control.status("a").unwrap().received == 1).await;
        let again = async {
            until(|| restarts(&main, "a") == 1).await;
            assert_eq!(tell(&main, "a", "echo on").await.unwrap(), "on");
            until(|| control.status("a").unwrap().received == 2).await;
            let start = async {
                let started = control.start("a").await;
                gate.open(1);
                started
            };
            tokio::join!(within(control.stop("a")), start)
        };
        tokio::join!(control.reload_extension("a"), again)
    };
    let (_, (reloaded, (stopped, started))) = tokio::join!(tell(&main, "a", "call gate@1 pass"), rest);
    assert_eq!((reloaded, started), (Ok(()), Ok(())));
    assert_eq!(stopped, Some(Ok(())), "whoever asked for the stop waits for ever");
}

#[tokio::test]
async fn one_whose_delay_is_over_is_not_shown_as_backing_off() {
    let gate = Gate::new();
    let b = puppet_with("b", |b| {
        b.wants = vec!["gate@1".parse().unwrap()];
        set(b, "start", "call gate@1 pass");
    });
    let a = puppet_with("a", |a| {
        a.requires = vec!["b@1".parse().unwrap()];
        a.restart.policy = RestartPolicy::OnFailure;
        (a.restart.backoff, a.restart.max_backoff) = (Duration::from_millis(1), Duration::from_millis(1));
    });
    gate.open(1);
    let main = gate.start(vec![a, b]).await;
    let control = main.control();
    let check = async {
        until(|| state(control, "b") == ExtensionState::Starting).await;
        assert_eq!(tell(&main, "a", "trap").await, Err("Trapped".to_owned()));
        let shown = within(until(|| state(control, "a") == ExtensionState::Loaded)).await;
        gate.open(1);
        shown
    };
    let (_, shown) = tokio::join!(control.restart("b"), check);
    assert!(shown.is_some(), "it is shown as backing off, with a restart that is past");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_refused_while_an_extension_is_exchanged() {
    let main = start(vec![puppet("a")]).await;
    let (client, stopped) =
        (main.client().clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let hammer = std::thread::spawn({
        let stopped = stopped.clone();
        move || {
            let mut refused = Vec::new();
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                match client.call("a@1", "run", "echo").now_or_never() {
                    Some(Err(Error::Overloaded(_))) | None => {}
                    Some(Err(error)) => refused.push(error),
                    Some(Ok(_)) => {}
                }
            }
            refused
        }
    });
    let mut reloads = 0;
    let began = std::time::Instant::now();
    while began.elapsed() < LONG {
        main.control().reload_extension("a").await.unwrap();
        reloads += 1;
    }
    stopped.store(true, std::sync::atomic::Ordering::Relaxed);
    let refused = hammer.join().unwrap();
    assert_eq!(refused, vec![], "in {reloads} reloads");
}

#[tokio::test]
async fn the_configuration_that_main_was_started_with_can_be_applied_again() {
    let gate = Gate::new();
    let all = || vec![puppet_with("a", |a| a.requires = vec!["gate@1".parse().unwrap()])];
    let main = gate.start(all()).await;
    let report = main.control().reload_with(config(all())).await;
    assert_eq!(report.map(|report| report.changed), Ok(vec![]));
}

#[tokio::test]
async fn one_that_comes_back_while_it_is_loaded_runs_as_it_is_configured_now() {
    let components = Components::new();
    let main = start(vec![components.puppet(|_| {}), puppet("b")]).await;
    let control = main.control();
    let back = components.puppet(|a| a.limits.memory = 8 << 20);
    components.put(2);
    let away_and_back = async {
        control.reload_with(config(vec![puppet("b")])).await.unwrap();
        control.reload_with(config(vec![back, puppet("b")])).await.unwrap()
    };
    let (_reloaded, report) = tokio::join!(control.reload_extension("a"), away_and_back);
    assert_eq!(report.failed, vec![]);
    reached(&main, "a", ExtensionState::Ready).await;
    assert_eq!(control.status("a").unwrap().memory_limit, 8 << 20);
}

#[tokio::test]
async fn a_version_that_is_being_loaded_when_the_one_before_dies_is_started_at_once() {
    let components = Components::new();
    let main = start(vec![components.puppet(|a| {
        a.restart.policy = RestartPolicy::OnFailure;
        (a.restart.backoff, a.restart.max_backoff) = (HOUR, HOUR);
    })])
    .await;
    // Compiling takes longer than dying.
    components.put(2);
    let reload = within(main.control().reload_extension("a"));
    let (reloaded, told) = tokio::join!(reload, tell(&main, "a", "trap"));
    assert_eq!((reloaded, told), (Some(Ok(())), Err("Trapped".to_owned())));
}

//! Extensions that die, do not start, do not stop, or forge handles.

use std::time::{Duration, Instant, SystemTime};

use weir_host::{
    ExtensionConfig,
    config::RestartPolicy,
    control::{ControlError, ExtensionState, FailureRecord},
};

use super::{
    crafted::{Crafted, component},
    stage::{Fault, Stage, hostile_with},
    support::{Gate, puppet, puppet_with, reached, set, tell},
};

const SOON: Duration = Duration::from_millis(1);

/// A puppet that ends with this command at each start, and restarts.
fn mortal(start: &str, policy: RestartPolicy) -> ExtensionConfig {
    puppet_with("hostile", |h| {
        set(h, "start", start);
        h.restart.policy = policy;
        (h.restart.backoff, h.restart.max_backoff) = (SOON, 4 * SOON);
    })
}

/// Expects five starts with growing delays, and then quarantine.
async fn is_quarantined(stage: &Stage, cause: &str) -> Vec<FailureRecord> {
    let reason = reached(&stage.main, "hostile", ExtensionState::Quarantined).await.unwrap();
    assert_eq!(
        reason,
        format!("5 failures within 1m, the last: {cause}; `weir restart hostile` starts it again")
    );
    let status = stage.status("hostile");
    assert_eq!((status.restarts, status.failures.len()), (4, 5));
    for (failure, longest) in status.failures.iter().zip([1, 2, 4, 4]) {
        assert_eq!((&*failure.cause, failure.then), (cause, ExtensionState::BackingOff));
        // Delays count from when the supervisor heard.
        assert!(failure.next_restart.unwrap() >= failure.time + SOON * longest / 2, "{failure:?}");
    }
    let last = status.failures.last().unwrap();
    assert_eq!((&*last.cause, last.then, last.next_restart), (cause, ExtensionState::Quarantined, None));
    let failed = |message: &str| message == format!("failed: {cause}");
    assert_eq!(stage.said_by_main("hostile").iter().filter(|line| failed(&line.message)).count(), 5);

    // Neither start nor stop lifts it.
    let refused = Err(ControlError::NotStarted { id: "hostile".parse().unwrap(), reason });
    assert_eq!(stage.main.control().start("hostile").await, refused);
    stage.main.control().stop("hostile").await.unwrap();
    assert_eq!(stage.main.control().start("hostile").await, refused);
    assert_eq!(stage.status("hostile").restarts, 4);
    stage.stands().await;
    status.failures
}

/// Case 23.
#[tokio::test]
async fn one_that_traps_whenever_it_starts_is_quarantined_after_five_times() {
    let stage = Stage::start(vec![mortal("trap", RestartPolicy::OnFailure)]).await;
    let cause = "trapped: wasm `unreachable` instruction executed";
    let failures = is_quarantined(&stage, cause).await;
    assert!(failures.iter().all(|failure| failure.trace.iter().any(|name| name.contains("trap"))));
    // Only a restart lifts it, and counts from zero.
    assert!(stage.main.control().restart("hostile").await.is_err());
    reached(&stage.main, "hostile", ExtensionState::Quarantined).await;
    assert_eq!((stage.status("hostile").restarts, stage.status("hostile").failures.len()), (9, 10));
}

/// Case 24.
#[tokio::test]
async fn one_that_exits_whenever_it_starts_is_quarantined_by_the_same_counter() {
    let stage = Stage::start(vec![mortal("exit 0", RestartPolicy::Always)]).await;
    is_quarantined(&stage, "finished").await;
}

/// Case 24: with `on-failure` it stays ended.
#[tokio::test]
async fn one_that_exits_as_it_should_is_not_restarted() {
    let stage = Stage::start(vec![mortal("exit 0", RestartPolicy::OnFailure)]).await;
    reached(&stage.main, "hostile", ExtensionState::Stopped).await;
    assert_eq!((stage.status("hostile").restarts, stage.status("hostile").failures), (0, vec![]));
    stage.stands().await;
}

/// Case 25.
#[tokio::test]
async fn a_trap_while_it_stops_is_a_stop_and_on_record() {
    let mortal = puppet_with("hostile", |h| {
        set(h, "stop", "trap");
        h.restart.policy = RestartPolicy::Always;
    });
    let stage = Stage::start(vec![mortal]).await;
    stage.main.control().stop("hostile").await.unwrap();
    let status = stage.status("hostile");
    assert_eq!((status.state, status.restarts), (ExtensionState::Stopped, 0));
    let [failure] = &status.failures[..] else { panic!("{status:?}") };
    assert_eq!(
        (&*failure.cause, failure.then),
        ("trapped: wasm `unreachable` instruction executed", ExtensionState::Stopped)
    );
    stage.stands().await;
}

/// Case 26.
#[tokio::test]
async fn one_that_is_never_ready_is_ended_at_its_deadline_and_tried_again() {
    let gate = Gate::new();
    let late = puppet_with("hostile", |h| {
        h.wants = vec!["gate@1".parse().unwrap()];
        set(h, "start", "call gate@1 pass");
        h.limits.ready_timeout = Duration::from_millis(50);
        h.restart.policy = RestartPolicy::OnFailure;
        (h.restart.backoff, h.restart.max_backoff) = (SOON, SOON);
        h.restart.failures = 2;
    });
    let stage = Stage::with(vec![late], Some(gate.service())).await;
    reached(&stage.main, "hostile", ExtensionState::Quarantined).await;
    let failures = stage.status("hostile").failures;
    assert_eq!(failures.len(), 2);
    for failure in failures {
        assert_eq!(failure.cause, "not ready within `ready-timeout` of 50ms");
        let limit = failure.limit.unwrap();
        assert_eq!(
            (limit.name.as_str(), limit.used, limit.allowed),
            ("ready-timeout", 50_000_000, 50_000_000)
        );
    }
    stage.stands().await;
}

/// Case 27: one that waits for messages stops by itself; one asleep elsewhere is ended at its `stop-timeout`. The
/// benchmark `kill` measures that this takes 100 ms at most.
#[tokio::test]
async fn one_that_is_asleep_in_the_host_is_stopped() {
    const SHORT: Duration = Duration::from_millis(20);
    const SLACK: Duration = Duration::from_secs(5);
    let gate = Gate::new();
    let waiting = |id: &str| {
        puppet_with(id, |w| {
            w.wants = vec!["gate@1".parse().unwrap()];
            w.limits.stop_timeout = SHORT;
        })
    };
    let sleeper = hostile_with(|h| h.limits.stop_timeout = SHORT);
    let extensions = vec![sleeper, waiting("caller"), puppet("listener")];
    let stage = Stage::with(extensions, Some(gate.service())).await;
    let control = stage.main.control();
    // Its `stop-timeout` is two minutes.
    let asked = Instant::now();
    control.stop("listener").await.unwrap();
    assert!(asked.elapsed() < SLACK, "{:?}", asked.elapsed());
    assert_eq!((stage.status("listener").reason, stage.status("listener").failures), (None, vec![]));
    let asleep =
        async { tokio::join!(stage.tell("sleep "), tell(&stage.main, "caller", "call gate@1 pass")) };
    let stop = async {
        while ["hostile", "caller"].iter().any(|id| stage.status(id).received == 0) {
            tokio::task::yield_now().await;
        }
        for id in ["hostile", "caller"] {
            let asked = Instant::now();
            control.stop(id).await.unwrap();
            assert!((SHORT..SHORT + SLACK).contains(&asked.elapsed()), "{id}: {:?}", asked.elapsed());
            let status = stage.status(id);
            assert_eq!(status.reason.as_deref(), Some("did not stop within `stop-timeout` of 20ms"));
        }
    };
    let (told, ()) = tokio::join!(asleep, stop);
    assert_eq!(told, (Err("Trapped".to_owned()), Err("Trapped".to_owned())));
    stage.stands().await;
}

/// Case 28; for too many handles see `pollables_used_wrongly_are_a_trap`.
#[tokio::test]
async fn a_handle_that_is_forged_or_was_dropped_is_a_trap() {
    const HANDLES: &str = r#"
        (import "wasi:io/poll@0.2.12" (instance $poll
          (export "pollable" (type $pollable (sub resource)))
          (export "[method]pollable.ready" (func (param "self" (borrow $pollable)) (result bool)))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.12" (instance $clock
          (alias outer 1 $pollable (type $own))
          (export "subscribe-duration" (func (param "when" u64) (result (own $own))))))"#;
    let cores = |body: &str| {
        format!(
            r#"(core func $ready (canon lower (func $poll "[method]pollable.ready")))
               (core func $make (canon lower (func $clock "subscribe-duration")))
               (core func $drop (canon resource.drop $pollable))
               (core module $main
                 (import "host" "ready" (func $ready (param i32) (result i32)))
                 (import "host" "make" (func $make (param i64) (result i32)))
                 (import "host" "drop" (func $drop (param i32)))
                 (func (export "run") (result i32) (local $handle i32)
                   (local.set $handle (call $make (i64.const 0))) {body}))
               (core instance $main (instantiate $main (with "host" (instance
                 (export "ready" (func $ready)) (export "make" (func $make)) (export "drop" (func $drop))))))"#
        )
    };
    let crafted = Crafted::new();
    for (body, cause) in [
        ("(call $ready (i32.const 12345))", "unknown handle index 12345"),
        ("(call $ready (i32.const -1))", "unknown handle index 4294967295"),
        ("(call $drop (i32.const 12345)) (i32.const 0)", "unknown handle index 12345"),
        ("(call $drop (local.get $handle)) (call $ready (local.get $handle))", "unknown handle index 1"),
        (
            "(call $drop (local.get $handle)) (call $drop (local.get $handle)) (i32.const 0)",
            "unknown handle index 1",
        ),
    ] {
        let stage = Stage::start(vec![crafted.extension("hostile", &component(HANDLES, &cores(body)))]).await;
        stage.failed("hostile", &Fault::new(&format!("trapped: {cause}"))).await;
    }
}

/// Case 29: as many as allowed, again and again.
#[tokio::test]
async fn pollables_without_end_are_bounded_and_gone_with_the_instance() {
    let hoarder = hostile_with(|h| {
        h.restart.policy = RestartPolicy::OnFailure;
        (h.restart.backoff, h.restart.max_backoff) = (SOON, SOON);
        (h.restart.failures, h.restart.window) = (1000, 2 * SOON);
    });
    let stage = Stage::start(vec![hoarder]).await;
    let mut died = 0;
    while died < 20 {
        match stage.tell("hoard-pollables").await {
            Err(told) if told == "Trapped" => died += 1,
            Err(told) => assert!(told.starts_with("NoProvider"), "{told}"),
            Ok(told) => panic!("{told}"),
        }
        tokio::task::yield_now().await;
    }
    // Shown as ready until the supervisor hears of its last death.
    while stage.status("hostile").restarts < 20 {
        tokio::task::yield_now().await;
    }
    reached(&stage.main, "hostile", ExtensionState::Ready).await;
    assert_eq!(stage.tell("poll-distinct 200").await.unwrap(), "[199]");
    let status = stage.status("hostile");
    assert_eq!((status.restarts, status.failures.len()), (20, 16));
    for failure in &status.failures {
        assert_eq!(failure.cause, "trapped: `resources` of 512 used up");
        assert_eq!(failure.then, ExtensionState::BackingOff);
        assert!(failure.next_restart.unwrap() > failure.time && failure.time <= SystemTime::now());
    }
    assert_eq!(stage.main.client().waiters(), 0);
}

/// Dependents of a failing extension wait, without a storm of restarts.
#[tokio::test]
async fn dependents_of_one_that_fails_hear_it_at_once_and_recover_with_it() {
    let provider = puppet_with("hostile", |h| {
        h.restart.policy = RestartPolicy::OnFailure;
        (h.restart.backoff, h.restart.max_backoff) = (Duration::from_secs(3600), Duration::from_secs(3600));
    });
    let requires = |id: &str| {
        puppet_with(id, |d| {
            d.requires = vec!["hostile@1".parse().unwrap()];
            d.restart.policy = RestartPolicy::OnFailure;
        })
    };
    let idle = puppet_with("idle", |d| {
        d.requires = vec!["hostile@1".parse().unwrap()];
        d.autostart = false;
    });
    let stage = Stage::start(vec![provider, requires("first"), requires("second"), idle]).await;
    let control = stage.main.control();
    let ask = || tell(&stage.main, "first", "call hostile@1 run echo on");
    assert_eq!(ask().await.unwrap(), "on");
    assert_eq!(stage.tell("trap").await, Err("Trapped".to_owned()));
    reached(&stage.main, "hostile", ExtensionState::BackingOff).await;
    let gone = r#"Error::NoProvider("`hostile` is not running")"#;
    assert_eq!(ask().await, Err(gone.to_owned()));
    let reason = "it requires `hostile@1`, and `hostile` does not run";
    let refused =
        |id: &str| Err(ControlError::NotStarted { id: id.parse().unwrap(), reason: reason.to_owned() });
    assert_eq!(control.start("idle").await, refused("idle"));
    assert_eq!(stage.status("idle").state, ExtensionState::Failed);
    // Running ones go on; one that dies waits for its requirement.
    assert_eq!(tell(&stage.main, "second", "trap").await, Err("Trapped".to_owned()));
    assert_eq!(reached(&stage.main, "second", ExtensionState::Failed).await.as_deref(), Some(reason));
    assert_eq!(stage.status("second").failures.len(), 1);
    control.start("hostile").await.unwrap();
    for id in ["second", "idle"] {
        reached(&stage.main, id, ExtensionState::Ready).await;
        assert_eq!(stage.status(id).failures.len(), usize::from(id == "second"));
    }
    assert_eq!(ask().await.unwrap(), "on");
    assert_eq!((stage.status("first").restarts, stage.status("hostile").restarts), (0, 1));
    stage.stands().await;
}

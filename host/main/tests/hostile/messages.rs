//! Faulty messages cost their sender, and nobody else.

use std::time::Duration;

use futures_util::FutureExt;
use weir_host::{
    CallOptions, Error, ExtensionConfig, config::RestartPolicy, control::ExtensionState, logs::Source,
};

use super::{
    crafted::{Crafted, text},
    stage::{Fault, Stage, hostile, hostile_with},
    support::{self, Gate, extension, puppet_with, set, tell},
};

/// Subscribes to `t`, serves `sleeper@1`, and never receives.
pub(crate) fn sleeper() -> ExtensionConfig {
    let mut sleeper = extension("sleeper", "hostile");
    sleeper.fulfills = vec!["sleeper@1".parse().unwrap()];
    sleeper.subscribes = vec!["t".parse().unwrap()];
    sleeper.limits.stop_timeout = Duration::from_millis(200);
    set(&mut sleeper, "contract", "sleeper@1");
    set(&mut sleeper, "start", "sleep t");
    sleeper
}

pub(crate) fn sender() -> ExtensionConfig {
    hostile_with(|h| {
        h.wants =
            ["hostile@1", "sleeper@1", "stopped@1", "nobody@1"].map(|name| name.parse().unwrap()).into();
        h.publishes = vec![">".parse().unwrap()];
        h.subscribes = vec![">".parse().unwrap()];
    })
}

/// Case 11.
#[tokio::test]
async fn lists_and_strings_that_are_not_in_memory_are_a_trap() {
    let crafted = Crafted::new();
    let list = "trapped: list pointer/length out of bounds of memory";
    let string = "trapped: string pointer/length out of bounds of memory";
    let cases = [
        ("past-the-end", [0, 5, 65_530, 7], list),
        ("four-gigabytes", [0, 5, 0, -1], list),
        ("two-gigabytes", [0, 5, 0, i32::MAX], list),
        ("goes-round", [0, 5, -1, 2], list),
        ("empty-past-the-end", [0, 5, 65_537, 0], list),
        ("string-past-the-end", [65_530, 7, 0, 0], string),
        ("string-of-four-gigabytes", [0, -1, 0, 0], string),
        ("no-string", [0, 7, 0, 0], "trapped: invalid utf-8 sequence of 1 bytes from index 5"),
    ];
    let extensions = cases.map(|(id, arguments, _)| {
        let arguments: String = arguments.iter().map(|number| format!("(i32.const {number})")).collect();
        // No timeout, no parent, then the address of the result.
        let options = "(i32.const 0) (i32.const 0) (i32.const 0) (i64.const 0) (i32.const 1024)";
        let arguments = format!("{arguments} {options}");
        crafted.extension(id, &text("publish.wat", &[("@ARGUMENTS@", &arguments)]))
    });
    let stage = Stage::start(extensions.into()).await;
    for (id, _, cause) in cases {
        stage.failed(id, &Fault::new(cause)).await;
    }
}

/// Case 12.
#[tokio::test]
async fn what_is_over_a_limit_is_an_error_however_far_it_is_over_it() {
    let stage = Stage::start(vec![sender(), sleeper()]).await;
    let too_large = "Error::TooLarge(Size { bytes: 1048577, allowed: 1048576 })";
    assert_eq!(stage.tell("call 1048577 sleeper@1").await, Err(too_large.to_owned()));
    assert_eq!(stage.tell("send 1048577 sleeper@1").await, Ok(format!("0, then {too_large}")));
    assert_eq!(stage.tell("publish 1 1048577 t").await, Err(too_large.to_owned()));
    assert_eq!(stage.tell("publish 1 1048576 t").await.unwrap(), "delivered 1, shed 0");
    let payloads = ["answer", "answer-and-receive", "event", "event-to", "job"];
    let names = [
        "topic",
        "receiver",
        "pattern",
        "called-contract",
        "called-operation",
        "provider",
        "queue",
        "contract",
        "operation",
    ];
    // Beside the payload a call may carry 64 KiB.
    for bytes in [(1 << 20) + 1, (1 << 20) + (64 << 10), (1 << 20) + (64 << 10) + 1, 5_000_000] {
        for (kinds, allowed) in [(&payloads[..], 1 << 20), (&names[..], 16 << 10)] {
            let refused = format!("Err(Error::TooLarge(Size {{ bytes: {bytes}, allowed: {allowed} }}))");
            for kind in kinds {
                assert_eq!(
                    stage.tell(&format!("hand-over {kind} {bytes}")).await.unwrap(),
                    refused,
                    "{kind}"
                );
            }
        }
    }
    for (kind, refused) in [
        ("operations", "operations have longer names than one call carries"),
        ("done", "jobs; up to 1024 are possible"),
    ] {
        let told = stage.tell(&format!("hand-over {kind} 200000")).await.unwrap();
        assert_eq!(told, format!(r#"Err(Error::Invalid("200000 {refused}"))"#));
    }
    for kind in ["log", "reason"] {
        assert_eq!(stage.tell(&format!("hand-over {kind} 2000000")).await.unwrap(), "done");
    }
    assert_eq!(stage.tell("hand-over fields 100000").await.unwrap(), "done");
    let mut lines = stage.main.control().logs();
    lines.retain(|line| line.source == Source::Log);
    let [long, fields] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(long.message, format!("{}…", "x".repeat(4096)));
    let cut = |bytes| format!("{}…", "x".repeat(bytes));
    assert_eq!(long.fields, [(cut(64), cut(1024))]);
    assert_eq!((&*fields.message, fields.fields.len()), ("fields", 32));
    // The same instance has done all of that.
    assert_eq!((stage.status("hostile").restarts, stage.status("hostile").failures), (0, Vec::new()));
}

/// Case 12: a request beside is answered.
#[tokio::test]
async fn an_answer_that_is_too_large_leaves_the_other_requests_in_hand() {
    let stage = Stage::start(vec![puppet_with("many", |m| set(m, "receive", "any-order"))]).await;
    let large = tell(&stage.main, "many", "large 5000000");
    let (large, beside) = tokio::join!(large, tell(&stage.main, "many", "echo beside"));
    assert_eq!(large, Err("Error::TooLarge(Size { bytes: 5000000, allowed: 1048576 })".to_owned()));
    assert_eq!(beside.unwrap(), "beside");
    assert_eq!(stage.status("many").failures, Vec::new());
}

/// Case 12: errors are messages, too.
#[tokio::test]
async fn the_text_of_an_error_is_cut_off() {
    let stage = Stage::start(vec![hostile()]).await;
    for bytes in [300_000, 2_000_000] {
        let command = format!("large-error {bytes}");
        let error = stage.main.client().call("hostile@1", "run", command).await.unwrap_err();
        let Error::Handler(error) = error else { panic!("{error:?}") };
        assert_eq!((error.code.len(), error.message.len()), (64, 4096));
    }
    assert_eq!(stage.status("hostile").failures, Vec::new());
}

/// Case 14.
#[tokio::test]
async fn to_nobody_to_oneself_and_to_one_that_is_stopped_are_errors_of_their_own() {
    let stopped = puppet_with("stopped", |s| s.autostart = false);
    let stage = Stage::start(vec![sender(), stopped]).await;
    for (contract, called, sent) in [
        ("nobody@1", r#"Error::UnknownContract("nobody@1")"#, r#"Error::UnknownContract("nobody@1")"#),
        (
            "hostile@1",
            r#"Error::WouldDeadlock(["hostile", "hostile"])"#,
            r#"0, then Error::Invalid("`hostile` sends a request to itself")"#,
        ),
        (
            "stopped@1",
            r#"Error::NoProvider("`stopped` is not running")"#,
            r#"0, then Error::NoProvider("`stopped` is not running")"#,
        ),
        (
            "good@1",
            r#"Error::PermissionDenied("`hostile` may not call `good@1`; `requires` or `wants` would grant it")"#,
            r#"Error::PermissionDenied("`hostile` may not call `good@1`; `requires` or `wants` would grant it")"#,
        ),
    ] {
        assert_eq!(stage.tell(&format!("call 0 {contract}")).await, Err(called.to_owned()));
        let told = stage.tell(&format!("send 0 {contract}")).await;
        assert_eq!(told.unwrap_or_else(|error| error), sent);
    }
    assert_eq!(stage.main.client().waiters(), 0);
}

/// Case 16.
#[tokio::test]
async fn one_that_waits_for_ever_is_idle_and_stops_at_once() {
    let stage = Stage::start(vec![hostile()]).await;
    assert_eq!(stage.tell("echo 1").await.unwrap(), "1");
    stage.stands().await;
    let cpu = stage.status("hostile").cpu;
    for _ in 0..100 {
        stage.stands().await;
    }
    assert_eq!(stage.status("hostile").cpu, cpu);
    // By the stop, not by `stop-timeout`, which would be a failure.
    stage.main.control().stop("hostile").await.unwrap();
    let status = stage.status("hostile");
    assert_eq!((status.state, status.reason, status.failures), (ExtensionState::Stopped, None, Vec::new()));
}

/// Case 18; for two see `a_circle_of_blocking_calls_…`.
#[tokio::test]
async fn a_circle_of_three_is_refused_and_names_all_of_them() {
    let wants = |id: &str, contract: &str| puppet_with(id, |p| p.wants = vec![contract.parse().unwrap()]);
    let stage = Stage::start(vec![wants("a", "b@1"), wants("b", "c@1"), wants("c", "a@1")]).await;
    let (told, _) = stage.beside(tell(&stage.main, "a", "call b@1 run call c@1 run call a@1 run echo")).await;
    let told = told.unwrap_err().replace('\\', "");
    assert!(told.contains(r#"WouldDeadlock(["c", "a", "b", "c"])"#), "{told}");
    for id in ["a", "b", "c"] {
        assert_eq!(tell(&stage.main, id, "echo on").await.unwrap(), "on");
    }
    assert_eq!(stage.main.client().waiters(), 0);
}

/// Case 19.
#[tokio::test]
async fn whoever_waits_for_one_that_dies_hears_it_before_the_deadline() {
    let gate = Gate::new();
    let mortal = puppet_with("mortal", |m| m.wants = vec!["gate@1".parse().unwrap()]);
    let caller = |id: &str| puppet_with(id, |c| c.wants = vec!["mortal@1".parse().unwrap()]);
    let stage = Stage::with(vec![mortal, caller("first"), caller("second")], Some(gate.service())).await;
    let in_hand = tell(&stage.main, "first", "call mortal@1 run all call gate@1 pass; trap");
    let waiting = async {
        while stage.status("mortal").received == 0 {
            tokio::task::yield_now().await;
        }
        let waiting = tell(&stage.main, "second", "call mortal@1 run echo");
        let die = async {
            while stage.status("mortal").inbox_messages == 0 {
                tokio::task::yield_now().await;
            }
            gate.open(1);
            support::reached(&stage.main, "mortal", ExtensionState::Failed).await;
        };
        tokio::join!(waiting, die).0
    };
    let (in_hand, waiting) = tokio::join!(in_hand, waiting);
    assert_eq!(in_hand, Err("Error::Trapped".to_owned()));
    assert_eq!(waiting, Err("Error::PeerGone".to_owned()));
    assert_eq!(stage.main.client().waiters(), 0);
}

/// Case 19: the next instance serves unread messages. If none comes in time, the sender hears at once.
#[tokio::test]
async fn whoever_waits_unread_for_one_that_died_is_served_by_the_next_or_hears_at_once() {
    const MINUTE: Duration = Duration::from_secs(60);
    let soon = Duration::from_millis(1);
    let cases = [
        (RestartPolicy::Never, soon, 10 * MINUTE, Err(Error::PeerGone), ExtensionState::Failed),
        (
            RestartPolicy::OnFailure,
            30 * MINUTE,
            10 * MINUTE,
            Err(Error::PeerGone),
            ExtensionState::BackingOff,
        ),
        (RestartPolicy::OnFailure, soon, 10 * MINUTE, Ok("on".into()), ExtensionState::Ready),
    ];
    for (policy, backoff, timeout, outcome, state) in cases {
        let gate = Gate::new();
        let mortal = puppet_with("mortal", |m| {
            m.wants = vec!["gate@1".parse().unwrap()];
            m.restart.policy = policy;
            (m.restart.backoff, m.restart.max_backoff) = (backoff, backoff);
        });
        let stage = Stage::with(vec![mortal], Some(gate.service())).await;
        let in_hand = tell(&stage.main, "mortal", "all call gate@1 pass; trap");
        let waiting = async {
            while stage.status("mortal").received == 0 {
                tokio::task::yield_now().await;
            }
            let options = CallOptions::default().timeout(timeout);
            let mut call = Box::pin(stage.main.client().call_with("mortal@1", "run", "echo on", options));
            assert_eq!((&mut call).now_or_never(), None, "it is sent, and waits");
            gate.open(1);
            call.await
        };
        let (in_hand, waiting) = tokio::join!(in_hand, waiting);
        assert_eq!((in_hand, waiting), (Err("Trapped".to_owned()), outcome), "{policy:?} {backoff:?}");
        support::reached(&stage.main, "mortal", state).await;
        assert_eq!(stage.main.client().waiters(), 0);
        assert_eq!((stage.status("mortal").inbox_messages, stage.status("mortal").late), (0, 0));
    }
}

/// Case 20; for a request never received see `another_extensions_request_cannot_be_answered`.
#[tokio::test]
async fn a_second_answer_is_an_error_and_the_first_stands() {
    let stage = Stage::start(vec![hostile()]).await;
    assert_eq!(stage.tell("answer-twice").await.unwrap(), "first");
    let id = "18446744073709551615";
    let refused = |id: &str| {
        format!(r#"Error::Invalid("request {id} is not in hand: never received, or answered already")"#)
    };
    assert_eq!(stage.tell(&format!("answer {id}")).await, Err(refused(id)));
    let written = stage.written_by("hostile", Source::Stdout);
    assert_eq!(written, [format!("Ok(()), then Err({})", refused("1"))]);
    assert_eq!(stage.status("hostile").late, 0);
}

/// Case 21.
#[tokio::test]
async fn a_late_answer_is_discarded_and_counted() {
    let gate = Gate::new();
    let late = hostile_with(|h| h.wants = vec!["gate@1".parse().unwrap()]);
    let stage = Stage::with(vec![late], Some(gate.service())).await;
    let soon = CallOptions::default().timeout(Duration::from_millis(50));
    let called = stage.main.client().call_with("hostile@1", "run", "answer-late", soon).await;
    assert_eq!(called, Err(Error::Timeout));
    gate.open(1);
    assert_eq!(stage.tell("echo next").await.unwrap(), "next");
    assert_eq!(stage.written_by("hostile", Source::Stdout), ["Ok(())"]);
    let status = stage.status("hostile");
    assert_eq!((status.late, status.inbox_messages), (1, 0));
    assert_eq!(stage.main.client().waiters(), 0);
}

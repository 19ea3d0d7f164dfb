//! A faulty extension costs its messages in hand and its own instance, and others nothing.

use std::time::Duration;

use tokio::time::timeout;
use weir_host::{
    CallOptions, Error, ExtensionConfig, Main, Service,
    config::{ReloadMode, RestartPolicy},
    control::{ExtensionState, FailureRecord},
    logs::{Level, Source},
    peers::PeerConfig,
};

use super::support::{Gate, PATIENCE, builder, puppet, puppet_with, reached, set, start, taken, tell, until};

async fn last_failure(main: &Main, id: &str) -> FailureRecord {
    reached(main, id, ExtensionState::Failed).await;
    main.control().status(id).unwrap().failures.pop().unwrap()
}

#[tokio::test]
async fn a_trap_is_told_to_its_caller_and_the_others_answers_go_on() {
    let caller = puppet_with("caller", |c| c.wants = vec!["faulty@1".parse().unwrap()]);
    let main = start(vec![puppet("faulty"), caller, puppet("other")]).await;
    let others = async {
        for number in 0..200 {
            let text = number.to_string();
            assert_eq!(tell(&main, "other", &format!("echo {text}")).await.unwrap(), text);
        }
    };
    let (trapped, ()) = tokio::join!(tell(&main, "caller", "call faulty@1 run trap"), others);
    assert_eq!(trapped, Err("Error::Trapped".to_owned()));
    assert_eq!(tell(&main, "caller", "echo still here").await.unwrap(), "still here");

    let reason = reached(&main, "faulty", ExtensionState::Failed).await.unwrap();
    let failure = last_failure(&main, "faulty").await;
    assert_eq!(failure.cause, "trapped: wasm `unreachable` instruction executed");
    assert_eq!(failure.cause, reason);
    let handling = failure.handling.unwrap();
    assert_eq!((&*handling.operation, &*handling.sender), ("faulty@1 run", "caller"));
    assert!(failure.trace.iter().any(|name| name.contains("commands::trap")), "{:?}", failure.trace);
    assert_eq!(failure.hash.unwrap().len(), 64);
    let line = main.control().logs().into_iter().find(|line| line.level == Level::Error).unwrap();
    assert_eq!(
        (&*line.extension, &*line.message),
        ("faulty", "failed: trapped: wasm `unreachable` instruction executed")
    );
    assert!(line.fields.contains(&("message".to_owned(), handling.message.unwrap().to_string())), "{line:?}");
}

#[tokio::test]
async fn a_call_that_a_failure_ends_brings_it_to_the_embedding_program_and_its_case_to_all_others() {
    let caller = puppet_with("caller", |c| c.wants = vec!["faulty@1".parse().unwrap()]);
    let main = start(vec![puppet_with("faulty", |p| p.limits.fuel_per_message = 500_000_000), caller]).await;
    let mut app = PeerConfig::new("app:one".parse().unwrap());
    app.wants = vec!["faulty@1".parse().unwrap()];
    let app = main.peer(app).unwrap();
    let begin = |text| main.client().begin("faulty@1", "run", text, CallOptions::default()).unwrap();
    let mut of_app = app.client().begin("faulty@1", "run", "forget", CallOptions::default()).unwrap();
    let (mut forgotten, mut spin) = (begin("forget"), begin("spin"));
    let (also, id) = (forgotten.id(), spin.id());
    let failed = spin.answer().await.unwrap_err();
    // The record is there before the answer.
    assert_eq!(main.control().failure_of(id).as_ref(), failed.failure.as_deref());
    assert_eq!((&failed.error, failed.message), (&Error::Trapped, id));
    let failure = failed.failure.clone().unwrap();
    assert_eq!(failed.to_string(), format!("{}: {}", Error::Trapped, failure.cause));
    assert_eq!(failure.handling.as_ref().unwrap().message, Some(id));
    let limit = failure.limit.as_ref().unwrap();
    assert_eq!((limit.name.to_string(), limit.allowed), ("fuel-per-message".to_owned(), 500_000_000));
    assert!(failure.trace.iter().any(|name| name.contains("commands::spin")), "{:?}", failure.trace);
    assert_eq!(*failure.in_hand, [of_app.id(), also, id]);
    assert_eq!(forgotten.answer().await.unwrap_err().failure, failed.failure);

    let why = "`faulty` is not running: failed: `fuel-per-message` of 500000000 used up";
    let refused = main.client().call("faulty@1", "run", "echo").await;
    assert_eq!(refused, Err(Error::NoProvider(why.to_owned())));
    let heard = tell(&main, "caller", "call faulty@1 run echo").await.unwrap_err();
    assert!(heard.contains("`faulty` is not running") && !heard.contains("fuel"), "{heard}");
    let heard = of_app.answer().await.unwrap_err();
    assert_eq!((heard.to_string(), heard.failure), (Error::Trapped.to_string(), None));
    let refused = app.client().call("faulty@1", "run", "echo").await;
    assert_eq!(refused, Err(Error::NoProvider("`faulty` is not running".to_owned())));
}

#[tokio::test]
async fn work_for_one_message_ends_at_its_time_and_the_failure_says_how_long_it_took() {
    let allowed = Duration::from_millis(200);
    let main = start(vec![puppet_with("a", |p| {
        p.limits.fuel_per_message = 1_000_000_000_000;
        p.limits.time_per_message = Some(allowed);
        p.restart.policy = RestartPolicy::Always;
    })])
    .await;
    for _ in 0..100 {
        assert_eq!(
            tell(&main, "a", "burn 2000000").await.unwrap(),
            "0",
            "each message brings the time again"
        );
    }
    let mut call = main.client().begin("a@1", "run", "spin", CallOptions::default()).unwrap();
    let failure = call.answer().await.unwrap_err().failure.unwrap();
    assert_eq!(failure.cause, "worked for one message for longer than `time-per-message` of 200ms");
    let limit = failure.limit.as_ref().unwrap();
    assert_eq!(limit.name.to_string(), "time-per-message");
    assert!(Duration::from_nanos(limit.used) > allowed && limit.allowed == 200_000_000, "{limit:?}");
    reached(&main, "a", ExtensionState::Ready).await;
    assert_eq!(tell(&main, "a", "echo again").await.unwrap(), "again");
}

/// Two failures would quarantine it, and it would not come again by itself.
fn killable(id: &str) -> ExtensionConfig {
    puppet_with(id, |p| {
        p.limits.fuel_per_message = 1_000_000_000_000;
        p.wants = vec!["gate@1".parse().unwrap()];
        p.restart.policy = RestartPolicy::OnFailure;
        p.restart.failures = 2;
        (p.restart.backoff, p.restart.max_backoff) = (PATIENCE, PATIENCE);
    })
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends_the_work_wherever_it_is_and_that_counts_as_no_failure() {
    let gate = Gate::new();
    let main = gate.start(vec![killable("a")]).await;
    let begin =
        |text: &str| main.client().begin("a@1", "run", text.to_owned(), CallOptions::default()).unwrap();
    for _ in 0..3 {
        // It computes, it waits for an answer, and it waits for its next message.
        for work in ["spin", "call gate@1 pass", "forget"] {
            let call = begin(work);
            let id = call.id();
            taken(&main, "a").await;
            call.cancel();
            assert_eq!(tell(&main, "a", "echo again").await.unwrap(), "again", "after `{work}`");
            // It may have answered before it came to its end.
            until(|| main.control().failure_of(id).is_some()).await;
            let failure = main.control().failure_of(id).unwrap();
            assert_eq!(failure.cause, format!("ended by the caller of request {id}, which it had in hand"));
            assert_eq!(failure.limit, None);
        }
    }
    reached(&main, "a", ExtensionState::Ready).await;
    assert_eq!(main.control().status("a").unwrap().restarts, 9);
}

#[tokio::test]
async fn a_call_with_kill_on_drop_ends_the_work_at_its_deadline_and_with_its_future() {
    let main = Gate::new().start(vec![killable("a")]).await;
    let short = CallOptions::default().timeout(Duration::from_millis(20)).kill_on_drop();
    let late = main.client().call_with("a@1", "run", "spin", short.clone()).await;
    assert_eq!(late, Err(Error::Timeout));
    assert_eq!(tell(&main, "a", "echo again").await.unwrap(), "again");

    let long = CallOptions::default().kill_on_drop();
    let call = main.client().call_with("a@1", "run", "call gate@1 pass", long);
    assert!(timeout(Duration::from_millis(20), call).await.is_err());
    assert_eq!(tell(&main, "a", "echo again").await.unwrap(), "again");
    assert_eq!(main.control().status("a").unwrap().failures.len(), 2);

    // A cancel ends the work after the deadline, too, and whatever the call was.
    let mut late = CallOptions::default().timeout(Duration::from_millis(20));
    for is_unanswered in [false, true] {
        late.is_unanswered = is_unanswered;
        let mut call = main.client().begin("a@1", "run", "spin", late.clone()).unwrap();
        assert_eq!(call.answer().await.unwrap_err().error, Error::Timeout);
        call.cancel();
        assert_eq!(tell(&main, "a", "echo again").await.unwrap(), "again");
    }

    // Without it, only the wait ends: this one is still there when its answer comes.
    let call = main.client().begin("a@1", "run", "burn 2000000", CallOptions::default()).unwrap();
    taken(&main, "a").await;
    drop(call);
    assert_eq!(
        main.client().call_with("a@1", "run", "echo 1", CallOptions::default().kill_on_drop()).await.unwrap(),
        "1"
    );
    assert_eq!(main.control().status("a").unwrap().restarts, 4);
}

#[tokio::test]
async fn a_cancelled_call_ends_nothing_that_has_not_its_request_in_hand() {
    let gate = Gate::new();
    let main = gate.start(vec![killable("a"), killable("b")]).await;
    let begin =
        |text: &str| main.client().begin("a@1", "run", text.to_owned(), CallOptions::default()).unwrap();
    let mut first = begin("call gate@1 pass");
    taken(&main, "a").await;
    // It waits in the inbox, and is never taken.
    begin("trap").cancel();
    // It is answered, and the next one is in hand.
    let answered = begin("echo early");
    gate.open(1);
    first.answer().await.unwrap();
    until(|| main.client().waiters() == 0).await;
    let mut next = begin("call gate@1 pass");
    taken(&main, "a").await;
    answered.cancel();
    gate.open(1);
    next.answer().await.unwrap();
    assert_eq!(main.control().status("a").unwrap().restarts, 0);

    // Whoever else has a request in hand of it hears of that as of a failure.
    let (mut forgotten, killed) = (begin("forget"), begin("call gate@1 pass"));
    taken(&main, "a").await;
    killed.cancel();
    let failed = forgotten.answer().await.unwrap_err();
    assert_eq!(failed.error, Error::Trapped);
    assert!(failed.failure.unwrap().cause.starts_with("ended by the caller"));
    assert_eq!(main.control().status("b").unwrap().restarts, 0);
}

#[tokio::test]
async fn what_is_ended_while_its_successor_starts_gives_its_place_to_that() {
    let gate = Gate::new();
    gate.open(1);
    let mut a = killable("a");
    a.reload = ReloadMode::Overlap;
    set(&mut a, "start", "call gate@1 pass");
    let main = gate.start(vec![a]).await;
    let (reloaded, ()) = tokio::join!(main.control().reload_extension("a"), async {
        until(|| main.client().waiters() == 1).await;
        let call = main.client().begin("a@1", "run", "spin", CallOptions::default()).unwrap();
        let id = call.id();
        taken(&main, "a").await;
        call.cancel();
        until(|| main.control().failure_of(id).is_some()).await;
        gate.open(1);
    });
    reloaded.unwrap();
    assert_eq!(tell(&main, "a", "echo new").await.unwrap(), "new");
    // No third one asked the gate.
    assert_eq!((gate.is_used_up(), main.client().waiters()), (true, 0));
}

#[tokio::test]
async fn only_the_embedding_program_ends_the_work_for_a_call() {
    let main = Gate::new().start(vec![killable("a")]).await;
    let mut app = PeerConfig::new("app:one".parse().unwrap());
    app.wants = vec!["a@1".parse().unwrap()];
    let session = main.peer(app).unwrap();
    let refused =
        session.client().call_with("a@1", "run", "echo", CallOptions::default().kill_on_drop()).await;
    assert!(matches!(refused, Err(Error::PermissionDenied(_))), "{refused:?}");
    let call = session.client().begin("a@1", "run", "burn 2000000", CallOptions::default()).unwrap();
    taken(&main, "a").await;
    call.cancel();
    assert_eq!(tell(&main, "a", "echo still").await.unwrap(), "still");
    assert_eq!(main.control().status("a").unwrap().restarts, 0);
}

async fn handled(main: &Main, id: &str) -> [Option<String>; 4] {
    let handling = last_failure(main, id).await.handling.unwrap();
    let lines = main.control().logs();
    let line = lines.iter().find(|line| line.message.starts_with("failed")).unwrap();
    let said =
        |name: &str| line.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
    let said = ["handling", "sender", "message", "sequence"].map(said);
    let number = handling.message.map(|id| id.to_string());
    let kept =
        [Some(handling.operation), Some(handling.sender), number, handling.sequence.map(|n| n.to_string())];
    assert_eq!(said, kept);
    kept
}

fn texts<const N: usize>(texts: [&str; N]) -> [Option<String>; N] {
    texts.map(|text| (!text.is_empty()).then(|| text.to_owned()))
}

#[tokio::test]
async fn a_failure_at_an_event_names_it_and_not_a_request_that_is_put_off() {
    let main = start(vec![puppet_with("a", |a| a.subscribes = vec!["t.>".parse().unwrap()])]).await;
    tell(&main, "a", "subscribe t.>").await.unwrap();
    let client = main.client().clone();
    let put_off = tokio::spawn(async move { client.call("a@1", "run", "forget").await });
    while main.control().status("a").unwrap().received < 2 {
        tokio::task::yield_now().await;
    }
    for payload in ["heard", "trap"] {
        main.client().publish("t.u", payload).await.unwrap();
    }
    assert_eq!(handled(&main, "a").await, texts(["event t.u", "main", "", "2"]));
    assert_eq!(put_off.await.unwrap(), Err(Error::Trapped));
}

#[tokio::test]
async fn a_failure_at_a_response_names_who_gave_it() {
    let asks = puppet_with("a", |a| a.wants = vec!["b@1".parse().unwrap()]);
    let main = start(vec![asks, puppet("b")]).await;
    let sent = tell(&main, "a", "send b@1 run echo trap").await.unwrap();
    assert_eq!(handled(&main, "a").await, texts(["response", "b", &sent, ""]));
}

#[tokio::test]
async fn of_several_requests_in_hand_a_failure_names_the_first_of_those_that_came_last() {
    for receive in ["", "in-order", "any-order"] {
        let gate = Gate::new();
        let a = puppet_with("a", |a| {
            a.wants = vec!["gate@1".parse().unwrap()];
            if !receive.is_empty() {
                set(a, "receive", receive);
            }
        });
        let culprit = puppet_with("culprit", |c| c.wants = vec!["a@1".parse().unwrap()]);
        let main = gate.start(vec![a, culprit]).await;
        let status = || main.control().status("a").unwrap();
        let mut calls = Vec::new();
        let mut call = |text: &'static str| {
            let client = main.client().clone();
            calls.push(tokio::spawn(async move { client.call("a@1", "run", text).await }));
        };
        for (received, text) in [(1, "forget"), (2, "call gate@1 pass")] {
            call(text);
            while status().received < received {
                tokio::task::yield_now().await;
            }
        }
        call("echo before");
        while status().inbox_messages < 1 {
            tokio::task::yield_now().await;
        }
        let trapped = async { tell(&main, "culprit", "call a@1 run trap").await };
        let rest = async {
            while status().inbox_messages < 2 {
                tokio::task::yield_now().await;
            }
            call("echo after");
            while status().inbox_messages < 3 {
                tokio::task::yield_now().await;
            }
            gate.open(1);
        };
        let (trapped, ()) = tokio::join!(trapped, rest);
        assert_eq!(trapped, Err("Error::Trapped".to_owned()));
        let [operation, sender, ..] = handled(&main, "a").await;
        assert_eq!([operation, sender], texts(["a@1 run", "culprit"]), "{receive}");
    }
}

#[tokio::test]
async fn an_endless_loop_ends_at_its_fuel_while_others_are_served() {
    let spinner = puppet_with("spinner", |s| s.limits.fuel_per_message = 50_000_000);
    let main = start(vec![spinner, puppet("other")]).await;
    let (spun, echoed) = tokio::join!(tell(&main, "spinner", "spin"), tell(&main, "other", "echo 1"));
    assert_eq!((spun, echoed), (Err("Trapped".to_owned()), Ok("1".to_owned())));
    let failure = last_failure(&main, "spinner").await;
    assert_eq!(failure.cause, "`fuel-per-message` of 50000000 used up");
    assert!(failure.trace.iter().any(|name| name.contains("commands::spin")), "{:?}", failure.trace);
}

#[tokio::test]
async fn memory_beyond_the_limit_is_refused_and_the_extension_goes_on() {
    let main = start(vec![puppet_with("a", |a| a.limits.memory = 4 << 20)]).await;
    assert_eq!(tell(&main, "a", "reserve 8000000").await.unwrap(), "refused");
    assert_eq!(tell(&main, "a", "reserve 1000000").await.unwrap(), "reserved");
    let status = main.control().status("a").unwrap();
    assert!((1_000_000..=4 << 20).contains(&status.memory), "{}", status.memory);
    assert_eq!(status.state, ExtensionState::Ready);
}

/// The host call at the deepest point needs host stack, most in unoptimised builds.
#[tokio::test]
async fn endless_recursion_that_calls_the_host_at_every_depth_is_a_trap() {
    let main = start(vec![puppet("deep"), puppet("other")]).await;
    assert_eq!(tell(&main, "deep", "recurse").await, Err("Trapped".to_owned()));
    assert_eq!(last_failure(&main, "deep").await.cause, "trapped: call stack exhausted");
    assert_eq!(tell(&main, "other", "echo 1").await.unwrap(), "1");
    main.control().start("deep").await.unwrap();
    assert_eq!(tell(&main, "deep", "echo 1").await.unwrap(), "1");
}

/// The called extension runs, and ends, on top of the caller's stack.
#[tokio::test]
async fn whom_an_extension_calls_at_the_end_of_its_stack_can_run_and_trap_there() {
    let callers = ["deep", "flat"].map(|id| puppet_with(id, |p| p.wants = vec!["other@1".parse().unwrap()]));
    let main = start([&callers[..], &[puppet("other")]].concat()).await;
    assert_eq!(tell(&main, "deep", "recurse other@1 run echo 1").await, Err("Trapped".to_owned()));
    assert_eq!(last_failure(&main, "deep").await.cause, "trapped: call stack exhausted");
    assert!(main.control().status("other").unwrap().received > 100);
    assert_eq!(tell(&main, "flat", "call other@1 run recurse").await, Err("Error::Trapped".to_owned()));
    assert_eq!(last_failure(&main, "other").await.cause, "trapped: call stack exhausted");
    assert_eq!(tell(&main, "flat", "echo 1").await.unwrap(), "1");
}

#[tokio::test]
async fn what_a_panicking_extension_says_is_in_its_log() {
    let main = start(vec![puppet("a")]).await;
    assert_eq!(tell(&main, "a", "panic out of cheese").await, Err("Trapped".to_owned()));
    reached(&main, "a", ExtensionState::Failed).await;
    let logs = main.control().logs();
    assert!(
        logs.iter().any(|l| l.source == Source::Stderr && l.message.contains("out of cheese")),
        "{logs:?}"
    );
}

#[tokio::test]
async fn an_exit_in_the_middle_of_a_request_is_peer_gone_and_a_failure() {
    let main = start(vec![puppet("a")]).await;
    assert_eq!(tell(&main, "a", "exit 3").await, Err("PeerGone".to_owned()));
    let reason = reached(&main, "a", ExtensionState::Failed).await;
    assert_eq!(reason.as_deref(), Some("exited with code 1"));
}

#[tokio::test]
async fn a_panic_in_a_handler_of_mains_own_is_peer_gone_and_main_lives() {
    let faulty = Service::new("faulty@1".parse().unwrap())
        .on("panic".parse().unwrap(), async |_| panic!("a handler that panics, as it should"))
        .on_blocking("panic-blocking".parse().unwrap(), |_| panic!("another one"))
        .on("echo".parse().unwrap(), async |request| Ok(request.payload));
    let caller = puppet_with("a", |a| a.wants = vec!["faulty@1".parse().unwrap()]);
    let main = builder(vec![caller]).serve(faulty).start().await.unwrap();
    for operation in ["panic", "panic-blocking"] {
        assert_eq!(main.client().call("faulty@1", operation, "").await, Err(Error::PeerGone));
        let told = tell(&main, "a", &format!("call faulty@1 {operation}")).await;
        assert_eq!(told, Err("Error::PeerGone".to_owned()));
    }
    assert_eq!(main.client().call("faulty@1", "echo", "1").await.unwrap(), "1");
}

#[tokio::test]
async fn a_loop_before_ready_fails_at_the_fuel_limit_or_the_ready_deadline() {
    let hungry = puppet_with("hungry", |p| {
        p.limits.fuel_to_start = 500_000_000;
        super::support::set(p, "start", "spin");
    });
    let slow = puppet_with("slow", |p| {
        p.limits.fuel_to_start = 1_000_000_000_000;
        p.limits.ready_timeout = Duration::from_millis(300);
        super::support::set(p, "start", "spin");
    });
    let main = start(vec![hungry, slow, puppet("other")]).await;
    let reason = |id: &str| main.control().status(id).unwrap().reason.unwrap();
    assert_eq!(reason("hungry"), "`fuel-to-start` of 500000000 used up");
    assert_eq!(reason("slow"), "not ready within `ready-timeout` of 300ms");
    assert_eq!(tell(&main, "other", "echo 1").await.unwrap(), "1");
}

#[tokio::test]
async fn a_loop_after_stop_is_killed_at_the_stop_deadline() {
    let stubborn = puppet_with("stubborn", |p| {
        p.limits.fuel_to_start = 1_000_000_000_000;
        p.limits.stop_timeout = Duration::from_millis(300);
        super::support::set(p, "stop", "spin");
    });
    let main = start(vec![stubborn]).await;
    // Without a message there is only the start's budget.
    main.control().stop("stubborn").await.unwrap();
    let status = main.control().status("stubborn").unwrap();
    assert_eq!(status.state, ExtensionState::Stopped);
    assert_eq!(status.reason.as_deref(), Some("did not stop within `stop-timeout` of 300ms"));
    assert_eq!(status.failures.len(), 1);
}

#[tokio::test]
async fn a_request_that_a_killed_extension_had_in_hand_is_answered_trapped() {
    let stubborn = puppet_with("stubborn", |p| {
        p.limits.fuel_per_message = 1_000_000_000_000;
        p.limits.stop_timeout = Duration::from_millis(300);
    });
    let main = start(vec![stubborn]).await;
    let forgotten = tell(&main, "stubborn", "forget");
    let killed = async {
        let spin = tell(&main, "stubborn", "spin");
        let stop = async {
            while main.control().status("stubborn").unwrap().received < 2 {
                tokio::task::yield_now().await;
            }
            main.control().stop("stubborn").await.unwrap();
        };
        tokio::join!(spin, stop).0
    };
    let trapped = Err("Trapped".to_owned());
    assert_eq!(tokio::join!(forgotten, killed), (trapped.clone(), trapped));
}

//! What became of requests is counted by operation, however they end and whatever instance of the provider had them.

use std::{borrow::Cow, time::Duration};

use super::*;
use weir_reports::OperationStatus;

/// Of one operation: its name, requests that ended, their time in seconds, and those that failed by error.
type Counts = (String, u64, f64, Vec<(&'static str, u64)>);

fn counts(bus: &TestBus) -> Vec<Counts> {
    let counts = |OperationStatus { provider, contract, operation, failed, durations }| {
        let ended = durations.buckets.iter().sum();
        let failed = failed.into_iter().map(|(error, count)| match error {
            Cow::Borrowed(error) => (error, count),
            Cow::Owned(error) => panic!("{error} is no case of an error"),
        });
        (format!("{provider}: {contract} {operation}"), ended, durations.sum, failed.collect())
    };
    bus.operations().into_iter().map(counts).collect()
}

async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn each_end_of_a_request_is_counted_with_its_time_but_not_one_that_was_given_up() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    assert_eq!(bus.operations(), []);
    let call = || bus.call(&caller, "c@1", "").unwrap();
    let [answered, failed, dropped, late, given_up] = [call(), call(), call(), call(), call()];
    after(1).await;
    take_request(&provider).responder.give(ok(""));
    after(1).await;
    take_request(&provider).responder.give(Err(HandlerError::new("not-found", "").into()));
    drop(take_request(&provider));
    let (in_hand, abandoned) = (take_request(&provider), take_request(&provider));
    drop(given_up);
    assert!(!abandoned.responder.give(ok("")));
    assert_eq!(late.answer().await, Err(Error::Timeout));
    in_hand.responder.give(ok("late"));
    drop((answered, failed, dropped));
    let failed = vec![("handler", 1), ("peer-gone", 1), ("timeout", 1)];
    // Seconds: 1, 2, 2, and the timeout after 5.
    assert_eq!(counts(&bus), [("p: c@1 do".to_owned(), 4, 10.0, failed)]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_counted_before_it_is_given_counts_once() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = bus.call(&caller, "c@1", "").unwrap();
    after(1).await;
    let held = take_request(&provider);
    held.responder.count_failure(&Error::Trapped);
    let counted = counts(&bus);
    let [(_, 1, seconds, failed)] = &counted[..] else { panic!("{counted:?}") };
    assert_eq!((seconds.round(), &failed[..]), (1.0, &[("trapped", 1)][..]));
    after(1).await;
    held.responder.give_counted(Error::Trapped);
    drop(held);
    assert_eq!(call.answer().await, Err(Error::Trapped));
    assert_eq!(counts(&bus), counted);

    // Its deadline may pass before it is given.
    let late = bus.call(&caller, "c@1", "").unwrap();
    let held = take_request(&provider);
    held.responder.count_failure(&Error::Trapped);
    assert_eq!(late.answer().await, Err(Error::Timeout));
    held.responder.give_counted(Error::Trapped);
    let counted = counts(&bus);
    let [(_, 2, _, failed)] = &counted[..] else { panic!("{counted:?}") };
    assert_eq!(&failed[..], &[("trapped", 2)][..]);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_has_no_duration_and_what_waits_for_a_start_has() {
    let bus = TestBus::new();
    let limits = PeerLimits { inbox: InboxLimits { messages: 1, ..LIMITS.inbox }, ..LIMITS };
    let provider = bus.add_with("p", limits, &["c@1"], &[]);
    let caller = bus.ready("a", &[], &["c@1"]);
    provider.set_phase(Phase::Starting);
    let call = bus.call(&caller, "c@1", "").unwrap();
    assert_eq!(bus.operations(), [], "it may serve no such operation");
    start(&provider, &["c@1"]);
    assert!(matches!(bus.call(&caller, "c@1", ""), Err(Error::Overloaded(_))));
    after(1).await;
    take_request(&provider).responder.give(ok(""));
    assert_eq!(call.answer().await, ok(""));
    assert_eq!(counts(&bus), [("p: c@1 do".to_owned(), 1, 1.0, vec![("overloaded", 1)])]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_its_time_is_counted_when_that_is_known() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = bus.call(&caller, "c@1", "").unwrap();
    let Request { responder, .. } = take_request(&provider);
    assert!(responder.give_unmeasured(ok("")));
    assert_eq!(call.answer().await, ok(""));
    assert_eq!(counts(&bus)[0].1, 0);
    responder.stats().unwrap().durations().add(3_000_000_000);
    drop(responder);
    assert_eq!(counts(&bus), [("p: c@1 do".to_owned(), 1, 3.0, Vec::new())]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_counted_for_their_name_also_after_they_have_left() {
    let bus = TestBus::new();
    let (name, caller) = (bus.name("app:p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    for _ in 0..2 {
        let session = bus.arrive_with(&name, LIMITS, &["c@1"]);
        let call = bus.call(&caller, "c@1", "").unwrap();
        take_request(&session).responder.give(ok(""));
        call.answer().await.unwrap();
        bus.leave(&session);
    }
    assert_eq!(counts(&bus), [("app:p: c@1 do".to_owned(), 2, 0.0, Vec::new())]);
}

#[tokio::test(start_paused = true)]
async fn copies_are_counted_for_the_extension_whose_inbox_they_serve() {
    let bus = TestBus::new();
    let (first, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let copy = bus.add_peer(&"copy".parse().unwrap(), LIMITS, any_topic(&["c@1"], &[]), Some(&first));
    start(&copy, &["c@1"]);
    let calls = [bus.call(&caller, "c@1", "").unwrap(), bus.call(&caller, "c@1", "").unwrap()];
    for server in [&first, &copy] {
        take_request(server).responder.give(ok(""));
    }
    for call in calls {
        call.answer().await.unwrap();
    }
    assert_eq!(counts(&bus), [("p: c@1 do".to_owned(), 2, 0.0, Vec::new())]);
}

#[tokio::test(start_paused = true)]
async fn operations_above_the_bound_are_counted_as_one() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.add("p", &["c@1", "d@1"], &[]), bus.ready("a", &[], &["c@1", "d@1"]));
    provider.begin_instance();
    let names: Vec<_> = (0..200).map(|number| format!("do-{number}")).collect();
    for contract in ["c@1", "d@1"] {
        provider.serve(contract, &names).unwrap();
    }
    provider.set_phase_if_up(Phase::Ready);
    for contract in ["c@1", "d@1"] {
        for name in &names {
            let mut target = bus.open(&caller, contract, name, None).unwrap();
            let term = bus.term(&target, None, Parent::default());
            let call = bus.call_to(&caller, &mut target, "".into(), term.clone(), false).unwrap();
            take_request(&provider).responder.give(ok(""));
            call.answer().await.unwrap();
        }
    }
    let counts = counts(&bus);
    assert_eq!(counts.len(), 257);
    assert_eq!(counts[256], ("p:  other".to_owned(), 144, 0.0, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn what_a_canary_takes_is_counted_apart_however_it_ends_and_is_in_the_sum() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = || bus.call(&caller, "c@1", "").unwrap();
    let counts = |by_canary| {
        let of = bus.operations_of(&provider, by_canary);
        of.into_iter().map(|it| (it.durations.buckets.iter().sum::<u64>(), it.failed)).collect::<Vec<_>>()
    };
    let before = call();
    let in_hand = take_request(&provider);
    provider.set_canary(true);
    let [answered, failed, late, dropped, waits] = [call(), call(), call(), call(), call()];
    let [answer, fail, hold] = [(); 3].map(|()| take_request(&provider));
    drop(take_request(&provider));
    answer.responder.give(ok(""));
    fail.responder.give(Err(HandlerError::new("not-found", "").into()));
    in_hand.responder.give(ok(""));
    assert_eq!(late.answer().await, Err(Error::Timeout));
    assert_eq!(waits.answer().await, Err(Error::Timeout));
    drop((before, answered, failed, dropped, hold));
    let failed = |cases: &[(&'static str, u64)]| cases.iter().map(|(case, n)| ((*case).into(), *n)).collect();
    assert_eq!(counts(true), [(4, failed(&[("handler", 1), ("peer-gone", 1), ("timeout", 1)]))]);
    // One was taken before, and one was never taken.
    assert_eq!(counts(false), [(2, failed(&[("timeout", 1)]))]);
    let all = bus.operations().remove(0);
    assert_eq!(all.durations.buckets.iter().sum::<u64>(), 6);
    assert_eq!(all.failed, failed(&[("handler", 1), ("peer-gone", 1), ("timeout", 2)]));
    provider.set_canary(false);
    let call = call();
    take_request(&provider).responder.give(ok(""));
    drop(call);
    assert_eq!((counts(true)[0].0, counts(false)[0].0), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn what_a_canary_does_not_serve_counts_for_it_and_what_another_takes_again_does_not() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = || bus.call(&caller, "c@1", "").unwrap();
    let ended = |by_canary| {
        let of = bus.operations_of(&provider, by_canary).into_iter();
        of.map(|it| it.durations.buckets.iter().sum::<u64>()).sum::<u64>()
    };
    let again = call();
    provider.set_canary(true);
    let request = take_request(&provider);
    provider.set_canary(false);
    request.responder.take(InstanceId::FIRST, false, provider.operations());
    request.responder.give(ok(""));
    drop(again);
    assert_eq!((ended(true), ended(false)), (0, 1));
    let unserved = call();
    provider.set_canary(true);
    provider.begin_instance();
    provider.set_phase(Phase::Ready);
    assert!(matches!(provider.take(), Taken::Empty | Taken::Stop), "the instance serves nothing");
    assert!(unserved.answer().await.is_err());
    assert_eq!((ended(true), ended(false)), (1, 1));
}

//! Waits that would never end are refused, with the names of the waiting peers.

use super::*;

fn circle(names: &[&str]) -> Error {
    Error::WouldDeadlock(names.iter().map(|&name| name.to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_blocking_call_to_oneself_is_refused() {
    let bus = TestBus::new();
    let a = bus.ready("a", &["a@1"], &["a@1"]);
    assert_eq!(blocking(&bus, &a, "a@1").unwrap_err(), circle(&["a", "a"]));
    let invalid = Error::Invalid("`a` sends a request to itself".to_owned());
    assert_eq!(bus.send(&a, "a@1", "").unwrap_err(), invalid);
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_two_is_refused_and_names_both() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &["a@1"]));
    let call = blocking(&bus, &a, "b@1").unwrap();
    assert_eq!(blocking(&bus, &b, "a@1").unwrap_err(), circle(&["b", "a", "b"]));
    drop(take_request(&b));
    assert_eq!(call.answer().await, Err(Error::PeerGone));
    drop(blocking(&bus, &b, "a@1").expect("nobody waits any more"));
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_three_is_refused_and_names_all() {
    let bus = TestBus::new();
    let a = bus.ready("a", &["a@1"], &["b@1"]);
    let b = bus.ready("b", &["b@1"], &["c@1"]);
    let c = bus.ready("c", &["c@1"], &["a@1"]);
    let calls = [blocking(&bus, &a, "b@1").unwrap(), blocking(&bus, &b, "c@1").unwrap()];
    assert_eq!(blocking(&bus, &c, "a@1").unwrap_err(), circle(&["c", "a", "b", "c"]));
    drop(calls);
}

#[tokio::test(start_paused = true)]
async fn who_waits_without_blocking_can_still_answer_and_closes_no_circle() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &["a@1"]));
    bus.send(&a, "b@1", "").unwrap();
    let back = blocking(&bus, &b, "a@1").unwrap();
    take_request(&a).responder.give(ok("still here"));
    assert_eq!(back.answer().await, ok("still here"));
    take_request(&b).responder.give(ok(""));
    take_reply(&a);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gave_up_or_timed_out_is_in_no_circle() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &["a@1"]));
    drop(blocking(&bus, &a, "b@1").unwrap());
    drop(blocking(&bus, &b, "a@1").unwrap());
    assert_eq!(blocking(&bus, &a, "b@1").unwrap().answer().await, Err(Error::Timeout));
    drop(blocking(&bus, &b, "a@1").unwrap());
}

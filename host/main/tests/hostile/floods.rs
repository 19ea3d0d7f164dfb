//! Too many messages: bounded by the receiver's inbox and the sender's messages under way.

use std::time::Duration;

use futures_util::{FutureExt, future::join_all};
use weir_host::{CallOptions, Error};

use super::{
    messages::{sender, sleeper},
    stage::Stage,
    support::{extension, puppet_with, set, taken, tell},
    turns::Turns,
};

/// Cases 13 and 15.
#[tokio::test]
async fn a_flood_to_one_that_never_receives_is_bounded_by_count_and_by_bytes() {
    let stage = Stage::start(vec![sender(), sleeper()]).await;
    let waits = || {
        let status = stage.status("sleeper");
        (status.inbox_messages, status.inbox_bytes)
    };
    // Events: the oldest are lost. An envelope counts 128 bytes, and the topic one.
    assert_eq!(stage.tell("publish 10000 0 t").await.unwrap(), "delivered 10000, shed 9744");
    assert_eq!(waits(), (256, 256 * 129));
    assert_eq!(stage.tell("publish 100 99871 t").await.unwrap(), "delivered 100, shed 346");
    assert_eq!(waits(), (10, 10 * 100_000));
    // Requests: the sender is told.
    let overloaded = "then Error::Overloaded(\"sleeper\")";
    assert_eq!(stage.tell("send 99872 sleeper@1").await.unwrap(), format!("10, {overloaded}"));
    assert_eq!(waits(), (20, 20 * 100_000));
    assert_eq!(stage.tell("send 0 sleeper@1").await.unwrap(), format!("246, {overloaded}"));
    assert_eq!(waits(), (266, 20 * 100_000 + 246 * 128));
    let refused = stage.main.client().call("sleeper@1", "run", "").await;
    assert_eq!(refused, Err(Error::Overloaded("sleeper".to_owned())));
    assert_eq!(stage.status("sleeper").shed, 9744 + 346 + 3);
    // Nothing outlives the stop; each sender hears.
    stage.main.control().stop("sleeper").await.unwrap();
    assert_eq!(waits(), (0, 0));
    assert_eq!(stage.main.client().waiters(), 0);
    stage.stands().await;
}

/// Case 17.
#[tokio::test]
async fn an_endless_exchange_of_two_costs_each_of_them_and_nobody_else() {
    let echoing = |id: &str, other: &str| {
        let mut one = extension(id, "hostile");
        one.fulfills = vec![format!("{id}@1").parse().unwrap()];
        one.subscribes = vec![id.parse().unwrap()];
        one.publishes = vec![other.parse().unwrap()];
        set(&mut one, "contract", &format!("{id}@1"));
        set(&mut one, "start", &format!("subscribe {id}"));
        set(&mut one, "echoes", other);
        one
    };
    let turns = Turns::default();
    let stage = Stage::with(vec![echoing("a", "b"), echoing("b", "a")], Some(turns.service())).await;
    stage.main.client().publish("a", "ball").await.unwrap();
    let received = |id: &str| stage.status(id).received;
    let until = async {
        while received("a") < 30_000 {
            tokio::task::yield_now().await;
        }
    };
    let ((_, answers), waits) = turns.during(&stage.main, "a", stage.beside(until)).await;
    assert!(answers >= 100, "{answers}");
    assert!(waits.are_short(), "{waits:?}");
    let (a, b) = (stage.status("a"), stage.status("b"));
    assert!(a.received.abs_diff(b.received) <= 100, "{} {}", a.received, b.received);
    let ratio = a.cpu.as_secs_f64() / b.cpu.as_secs_f64();
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    for id in ["a", "b"] {
        stage.main.control().stop(id).await.unwrap();
        assert_eq!(stage.status(id).failures, []);
    }
}

/// Case 22, for the receiver.
#[tokio::test]
async fn no_more_than_in_flight_requests_are_in_hand_and_every_requester_hears() {
    let forgetful = puppet_with("forgetful", |f| f.limits.in_flight = 8);
    let stage = Stage::start(vec![forgetful]).await;
    let soon = CallOptions::default().timeout(Duration::from_secs(2));
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let mut call =
                Box::pin(stage.main.client().call_with("forgetful@1", "run", "forget", soon.clone()));
            assert_eq!((&mut call).now_or_never(), None, "it is sent, and waits");
            call
        })
        .collect();
    while stage.status("forgetful").received < 8 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        stage.stands().await;
    }
    let status = stage.status("forgetful");
    assert_eq!((status.received, status.inbox_messages), (8, 192));
    let (outcomes, _) = stage.beside(join_all(calls)).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Err(Error::Timeout)), "{outcomes:?}");
    assert_eq!(tell(&stage.main, "forgetful", "echo on").await.unwrap(), "on");
    assert_eq!(stage.main.client().waiters(), 0);
}

/// Case 22, for the sender.
#[tokio::test]
async fn no_more_than_in_flight_requests_are_under_way() {
    let mut sender = sender();
    sender.limits.in_flight = 8;
    let stage = Stage::start(vec![sender, sleeper()]).await;
    let limit = r#"8, then Error::LimitExceeded(Limit { name: "in-flight", used: 9, allowed: 8 })"#;
    assert_eq!(stage.tell("send 0 sleeper@1").await.unwrap(), limit);
    stage.main.control().stop("sleeper").await.unwrap();
    // The error responses make room again.
    taken(&stage.main, "hostile").await;
    assert_eq!(
        stage.tell("send 0 sleeper@1").await.unwrap(),
        r#"0, then Error::NoProvider("`sleeper` is not running")"#
    );
}

/// Case 54: it goes on while it has messages, and others run after each slice.
#[tokio::test]
async fn one_that_publishes_to_itself_without_end_delays_nobody_and_stops() {
    let turns = Turns::default();
    let stage = Stage::with(vec![sender()], Some(turns.service())).await;
    let storm = stage.tell("publish-and-receive own");
    let stop = async {
        while stage.status("hostile").received < 50_000 {
            tokio::task::yield_now().await;
        }
        stage.main.control().stop("hostile").await.unwrap();
    };
    let both = stage.beside(async { tokio::join!(storm, stop) });
    let (((told, ()), answers), waits) = Box::pin(turns.during(&stage.main, "hostile", both)).await;
    assert!(answers >= 20, "{answers}");
    assert!(waits.are_short(), "{waits:?}");
    assert!(told.unwrap().parse::<u64>().unwrap() >= 49_999);
    assert_eq!(stage.status("hostile").failures, []);
}

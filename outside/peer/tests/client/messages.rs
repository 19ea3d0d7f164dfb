//! Events, requests and jobs.

use std::time::Duration;

use bytes::Bytes;
use weir_names::{Error, HandlerError};
use weir_peer::{
    Ended, Peer, Queue, Receipt, Requests, Subscription,
    frame::{FromMain, FromPeer},
};

use crate::fake::{FakeMain, MESSAGE_SIZE, options, session};

async fn subscribed(peer: &Peer, main: &mut FakeMain) -> Subscription {
    let (subscription, ()) = tokio::join!(peer.subscribe("a.>"), main.accept_subscription(9));
    subscription.unwrap()
}

async fn serving(peer: &Peer, main: &mut FakeMain) -> Requests {
    let main = async {
        let operations = vec!["read", "reset"];
        main.expect_frame(FromPeer::Serve { id: 1, contract: "thermal@1", operations }).await;
        main.answer(1, "").await;
    };
    let (requests, ()) = tokio::join!(peer.serve("thermal@1", &["read", "reset"]), main);
    requests.unwrap()
}

/// A call and its answer. Then both sides have read what the other had sent.
async fn exchange(peer: &Peer, main: &mut FakeMain) {
    let main = async {
        let id = main.expect_id().await;
        main.answer(id, "").await;
    };
    let (answer, ()) = tokio::join!(peer.call("a@1", "b", ""), main);
    answer.unwrap();
}

/// A job that Main gives to `take`.
async fn taken(queue: &Queue, main: &mut FakeMain, job: u32) -> weir_peer::Job {
    let main = async {
        let id = main.expect_id().await;
        main.answer(id, "").await;
        main.job(job, "uploads").await;
    };
    let (job, ()) = tokio::join!(queue.take(), main);
    job.unwrap()
}

#[tokio::test]
async fn a_receipt_says_what_happened_to_an_event() {
    let (peer, mut main) = session(options()).await;
    let main = async {
        main.expect_frame(FromPeer::Publish {
            id: 1,
            timeout_ms: 0,
            to: Some("telemetry"),
            topic: "a.b",
            payload: "x".into(),
        })
        .await;
        main.answer(1, vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]).await;
    };
    let (receipt, ()) = tokio::join!(peer.publish_to("telemetry", "a.b", "x"), main);
    let Receipt { delivered, shed, refused, .. } = receipt.unwrap();
    assert_eq!((delivered, shed, refused), (1, 2, 3));
}

#[tokio::test]
async fn a_slow_reader_of_events_stops_them_by_credit() {
    let (peer, mut main) = session(options().events(4)).await;
    let mut events = subscribed(&peer, &mut main).await;
    for sequence in 1..=4 {
        main.event(9, sequence).await;
    }
    assert_eq!(events.next().await.unwrap().sequence, 1);
    // Nothing is renewed yet: the next frame is the call, and the credit comes after it.
    exchange(&peer, &mut main).await;
    let event = events.next().await.unwrap();
    assert_eq!((event.sequence, &*event.topic, &*event.sender), (2, "a.b", "main"));
    main.expect_frame(FromPeer::Credit { events: 2 }).await;
    for sequence in 5..=6 {
        main.event(9, sequence).await;
    }
    for sequence in 3..=6 {
        assert_eq!(events.next().await.unwrap().sequence, sequence);
    }
    main.expect_frame(FromPeer::Credit { events: 2 }).await;
    main.expect_frame(FromPeer::Credit { events: 2 }).await;
}

#[tokio::test]
async fn a_main_that_sends_events_without_credit_is_left() {
    let (peer, mut main) = session(options().events(2)).await;
    let mut events = subscribed(&peer, &mut main).await;
    for sequence in 1..=3 {
        main.event(9, sequence).await;
    }
    assert_eq!(peer.closed().await, Ended::Protocol("more events than the credit".into()));
    // What had come can be read.
    assert_eq!(events.next().await.map(|event| event.sequence), Some(1));
    assert_eq!(events.next().await.map(|event| event.sequence), Some(2));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_dropped_subscription_is_ended_and_its_events_give_their_credit_back() {
    let (peer, mut main) = session(options().events(4)).await;
    let mut events = subscribed(&peer, &mut main).await;
    for sequence in 1..=3 {
        main.event(9, sequence).await;
    }
    events.next().await.unwrap();
    drop(events);
    main.expect_frame(FromPeer::Unsubscribe { id: 0, subscription: 9 }).await;
    main.expect(|frame| assert!(matches!(frame, FromPeer::Credit { .. }))).await;
    // Sent before Main has read that.
    main.event(9, 4).await;
    main.event(9, 5).await;
    main.expect(|frame| assert!(matches!(frame, FromPeer::Credit { .. }))).await;
    assert_eq!(peer.ended(), None);
}

#[tokio::test]
async fn a_subscription_without_its_grant_ends() {
    let (peer, mut main) = session(options()).await;
    let mut events = subscribed(&peer, &mut main).await;
    main.event(9, 1).await;
    main.send(&FromMain::Dropped { subscription: 9 }).await;
    assert!(events.next().await.is_some());
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_subscription_that_nobody_waits_for_is_ended() {
    let (peer, mut main) = session(options()).await;
    let id = tokio::select! {
        _ = peer.subscribe("a.>") => panic!("nothing answered"),
        id = main.expect_id() => id,
    };
    main.answer(id, vec![9, 0, 0, 0]).await;
    main.expect_frame(FromPeer::Unsubscribe { id: 0, subscription: 9 }).await;
}

#[tokio::test]
async fn a_request_is_answered_once_by_value_or_error() {
    let (peer, mut main) = session(options()).await;
    let mut requests = serving(&peer, &mut main).await;
    main.request(1, "read").await;
    let request = requests.next().await.unwrap();
    assert_eq!(
        (request.sender(), request.contract(), request.operation(), request.id()),
        ("telemetry", "thermal@1", "read", 99)
    );
    assert_eq!(request.payload(), &"in");
    assert!(request.remaining() > Duration::from_secs(4));
    request.answer(Ok("21.5")).await;
    main.expect_frame(FromPeer::Reply { request: 1, payload: "21.5".into() }).await;

    main.request(2, "reset").await;
    let error = HandlerError::new("busy", "later");
    requests.next().await.unwrap().answer(Err::<Bytes, _>(error.clone())).await;
    main.expect_frame(FromPeer::Fail { request: 2, error }).await;

    main.request(3, "read").await;
    let size = usize::try_from(MESSAGE_SIZE).unwrap();
    requests.next().await.unwrap().answer(Ok(vec![0; size + 1])).await;
    let error = HandlerError::new("too-large", "payload of 65537 bytes is over the limit of 65536");
    main.expect_frame(FromPeer::Fail { request: 3, error }).await;

    main.request(4, "read").await;
    drop(requests.next().await.unwrap());
    let dropped = HandlerError::new("dropped", "the peer dropped the request");
    main.expect_frame(FromPeer::Fail { request: 4, error: dropped.clone() }).await;

    // What waits when the contract is served no more, and what comes after.
    main.request(5, "read").await;
    main.send(&FromMain::Dropped { subscription: 1 }).await;
    drop(requests);
    main.expect_frame(FromPeer::Fail { request: 5, error: dropped.clone() }).await;
    main.request(6, "read").await;
    main.expect_frame(FromPeer::Fail { request: 6, error: dropped }).await;
}

#[tokio::test]
async fn a_request_that_is_given_up_says_so_and_is_not_answered() {
    let (peer, mut main) = session(options().requests(2)).await;
    let mut requests = serving(&peer, &mut main).await;
    main.request(1, "read").await;
    main.request(2, "read").await;
    let first = requests.next().await.unwrap();
    assert!(!first.is_given_up());
    main.send(&FromMain::GivenUp { request: 1 }).await;
    first.given_up().await;
    assert!(first.is_given_up());
    first.answer(Ok("late")).await;
    // The one that still waits is never seen.
    main.send(&FromMain::GivenUp { request: 2 }).await;
    exchange(&peer, &mut main).await;
    main.request(3, "read").await;
    main.request(4, "read").await;
    let third = requests.next().await.unwrap();
    third.answer(Ok("3")).await;
    main.expect_frame(FromPeer::Reply { request: 3, payload: "3".into() }).await;
    requests.next().await.unwrap().answer(Ok("4")).await;
    main.expect_frame(FromPeer::Reply { request: 4, payload: "4".into() }).await;
}

#[tokio::test]
async fn a_main_that_sends_more_requests_than_the_peer_takes_is_left() {
    let (peer, mut main) = session(options().requests(1)).await;
    let mut requests = serving(&peer, &mut main).await;
    main.request(1, "read").await;
    let request = requests.next().await.unwrap();
    main.request(2, "read").await;
    assert_eq!(peer.closed().await, Ended::Protocol("more requests than the peer takes".into()));
    request.given_up().await;
    assert!(requests.next().await.is_none());
}

#[tokio::test]
async fn a_refused_contract_is_not_served() {
    let (peer, mut main) = session(options()).await;
    let denied = Error::PermissionDenied("`fulfills` does not list it".into());
    let main = async {
        let id = main.expect_id().await;
        main.send(&FromMain::Error { id, error: denied.clone() }).await;
    };
    let (requests, ()) = tokio::join!(peer.serve("thermal@1", &["read"]), main);
    assert_eq!(requests.unwrap_err(), denied);
}

#[tokio::test]
async fn a_job_is_put_and_answered_with_its_id() {
    let (peer, mut main) = session(options()).await;
    let queue = peer.queue("uploads").unwrap();
    let program = async {
        assert_eq!(queue.put("1").await, Ok(5));
        assert_eq!(queue.put_within(Duration::from_secs(2), "2").await, Ok(6));
        assert_eq!(queue.put_until_done("3").await.unwrap_err().code(), "dead");
        assert_eq!(queue.put_until_done("4").await, Ok(()));
    };
    let main = async {
        for (timeout_ms, until_done, payload) in
            [(0, false, "1"), (2000, false, "2"), (0, true, "3"), (0, true, "4")]
        {
            let id = main
                .expect(|frame| match frame {
                    FromPeer::Put { id, timeout_ms: t, until_done: u, queue: "uploads", payload: p } => {
                        assert_eq!((t, u, p), (timeout_ms, until_done, payload.into()));
                        id
                    }
                    other => panic!("{other:?}"),
                })
                .await;
            match id {
                3 => main.send(&FromMain::Error { id, error: Error::handler("dead", "3 times") }).await,
                4 => main.answer(id, "").await,
                id => main.answer(id, u64::from(id + 4).to_le_bytes().to_vec()).await,
            }
        }
    };
    tokio::join!(program, main);
}

#[tokio::test]
async fn a_job_is_done_or_goes_back() {
    let (peer, mut main) = session(options()).await;
    let queue = peer.queue("uploads").unwrap();
    let job = taken(&queue, &mut main, 1).await;
    assert_eq!(
        (job.payload(), job.sender(), job.id(), job.deliveries()),
        (&"work".into(), "telemetry", 51, 1)
    );
    job.done();
    main.expect_frame(FromPeer::Done { job: 1 }).await;
    drop(taken(&queue, &mut main, 2).await);
    main.expect_frame(FromPeer::Return { job: 2 }).await;
}

#[tokio::test]
async fn a_job_that_came_for_a_dropped_take_waits_for_the_next() {
    let (peer, mut main) = session(options()).await;
    let queue = peer.queue("uploads").unwrap();
    let id = tokio::select! {
        _ = queue.take() => panic!("no job came"),
        id = main.expect_id() => id,
    };
    main.answer(id, "").await;
    main.job(1, "uploads").await;
    // No second TAKE is sent for it.
    queue.take().await.unwrap().done();
    main.expect_frame(FromPeer::Done { job: 1 }).await;

    // One that waits when the queue is dropped, and one that comes afterwards.
    let two = async { tokio::join!(queue.take(), queue.take()) };
    tokio::select! {
        _ = two => panic!("no job came"),
        () = async { main.expect_id().await; main.expect_id().await; } => {}
    }
    main.job(2, "uploads").await;
    let clone = queue.clone();
    drop(queue);
    drop(clone);
    main.expect_frame(FromPeer::Return { job: 2 }).await;
    main.job(3, "uploads").await;
    main.expect_frame(FromPeer::Return { job: 3 }).await;
}

#[tokio::test]
async fn two_takers_get_one_job_each() {
    let (peer, mut main) = session(options()).await;
    let queue = peer.queue("uploads").unwrap();
    let main = async {
        for job in [1, 2] {
            main.expect(|frame| assert!(matches!(frame, FromPeer::Take { jobs: 1, .. }), "{job}")).await;
        }
        main.job(1, "uploads").await;
        main.job(2, "uploads").await;
        main
    };
    let (one, two, main) = tokio::join!(queue.take(), queue.take(), main);
    let ids = [one.unwrap().id(), two.unwrap().id()];
    assert!(ids.contains(&51) && ids.contains(&52), "{ids:?}");
    drop(main);
}

#[tokio::test]
async fn a_refused_take_fails_and_the_next_asks_again() {
    let (peer, mut main) = session(options()).await;
    let queue = peer.queue("uploads").unwrap();
    let denied = Error::PermissionDenied("`takes` does not list `uploads`".into());
    for _ in 0..2 {
        let refuse = async {
            let id = main.expect_id().await;
            main.send(&FromMain::Error { id, error: denied.clone() }).await;
        };
        let (job, ()) = tokio::join!(queue.take(), refuse);
        assert_eq!(job.unwrap_err(), denied);
    }
    taken(&queue, &mut main, 1).await.done();
}

#[tokio::test]
async fn takers_of_a_queue_that_is_taken_back_are_told() {
    let (peer, mut main) = session(options()).await;
    let queue = peer.queue("uploads").unwrap();
    for _ in 0..2 {
        let refuse = async {
            for _ in 0..2 {
                let id = main.expect_id().await;
                main.answer(id, "").await;
            }
            main.send(&FromMain::NoJobs { queue: "uploads" }).await;
        };
        let (one, two, ()) = tokio::join!(queue.take(), queue.take(), refuse);
        assert_eq!([one.unwrap_err().case(), two.unwrap_err().case()], ["no-provider"; 2]);
    }
    taken(&queue, &mut main, 1).await.done();
}

#[tokio::test]
async fn a_second_subscription_to_a_pattern_is_refused_and_the_first_stays() {
    let (peer, mut main) = session(options()).await;
    let mut events = subscribed(&peer, &mut main).await;
    let (second, ()) = tokio::join!(peer.subscribe("a.>"), main.accept_subscription(9));
    assert_eq!(second.unwrap_err().case(), "invalid");
    main.event(9, 1).await;
    assert_eq!(events.next().await.unwrap().sequence, 1);
}

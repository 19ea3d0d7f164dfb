//! What a program and Main say to each other, by the client that ships.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use weir_host::{CallOptions, Error, HandlerError, peers::PeerStatus};
use weir_peer::{
    Options,
    frame::{FromMain, FromPeer},
};

use crate::support::{PATIENCE, Stage};

const FILE: &str = "
[queue.jobs]
[queue.kept]
store = 'store@1'

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1/echo', 'echo@1/sender', 'echo@1/never', 'theirs@1']
publishes = ['news.>']
subscribes = ['news.>']
puts = ['jobs', 'kept']

[peer.'sidecar:theirs']
tokens = ['HASH']
fulfills = ['theirs@1', 'store@1']
publishes = ['news.>']
puts = ['kept']
takes = ['jobs', 'kept']
";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_calls_as_itself_and_only_what_it_may() {
    let stage = Stage::new(FILE).await;
    let polite = stage.connect("app:polite").await;
    assert_eq!(polite.call("echo@1", "sender", "").await, Ok("app:polite".into()));
    let denied = polite.call("echo@1", "big", "").await.unwrap_err();
    assert_eq!(
        denied.to_string(),
        "permission denied: `app:polite` may not call `echo@1/big`; `wants` would grant it"
    );
    let within = polite.call_within(Duration::from_millis(20), "echo@1", "never", "").await;
    assert_eq!(within, Err(Error::Timeout));
    // Whatever the size, when nobody is there to refuse it.
    let large = stage.main.client().call("theirs@1", "do", vec![0; 2 << 20]).await;
    assert_eq!(large, Err(Error::NoProvider("`sidecar:theirs` is not connected".into())));
    let absent = polite.call("theirs@1", "do", "").await;
    assert_eq!(absent, Err(Error::NoProvider("`sidecar:theirs` is not connected".into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_serves_and_what_it_had_in_hand_ends_with_it() {
    let stage = Stage::new(FILE).await;
    let (polite, theirs) = (stage.connect("app:polite").await, stage.connect("sidecar:theirs").await);
    let mut requests = theirs.serve("theirs@1", &["do", "fail"]).await.unwrap();
    let serving = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            match request.operation() {
                "do" => {
                    let answer = format!("{} for {}", request.contract(), request.sender());
                    request.answer(Ok::<_, HandlerError>(answer)).await;
                }
                _ => request.answer(Err::<&str, _>(HandlerError::new("no", "not today"))).await,
            }
        }
    });
    assert_eq!(polite.call("theirs@1", "do", "").await, Ok("theirs@1 for app:polite".into()));
    assert_eq!(stage.main.client().call("theirs@1", "do", "").await, Ok("theirs@1 for main".into()));
    assert_eq!(polite.call("theirs@1", "fail", "").await, Err(Error::handler("no", "not today")));
    let unknown = polite.call("theirs@1", "else", "").await.unwrap_err();
    assert!(unknown.to_string().contains("no operation `else`"), "{unknown}");
    theirs.leave().await;
    serving.await.unwrap();
    stage.sessions_become(1).await;

    // Once more, and it goes with a request in hand.
    let theirs = stage.connect("sidecar:theirs").await;
    let mut requests = theirs.serve("theirs@1", &["do"]).await.unwrap();
    let call = tokio::spawn({
        let polite = polite.clone();
        async move { polite.call("theirs@1", "do", "").await }
    });
    let request = requests.next().await.unwrap();
    assert!(request.remaining() > Duration::from_secs(4));
    std::mem::forget(request);
    theirs.leave().await;
    assert_eq!(call.await.unwrap(), Err(Error::PeerGone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_up_is_told() {
    let stage = Stage::new(FILE).await;
    let (polite, theirs) = (stage.connect("app:polite").await, stage.connect("sidecar:theirs").await);
    let mut requests = theirs.serve("theirs@1", &["do"]).await.unwrap();
    let call = tokio::spawn(async move { polite.call("theirs@1", "do", "").await });
    let request = requests.next().await.unwrap();
    call.abort();
    request.given_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_that_is_counted_as_late() {
    let stage = Stage::new(FILE).await;
    let mut theirs = stage.raw("sidecar:theirs").await;
    theirs.send(&[FromPeer::Serve { id: 1, contract: "theirs@1", operations: vec!["do"] }]).await;
    theirs.next().await.unwrap();
    let options = CallOptions::default().timeout(Duration::from_millis(20));
    let call = stage.main.client().call_with("theirs@1", "do", "", options).await;
    assert_eq!(call, Err(Error::Timeout));
    let request = theirs.next().await.unwrap();
    let FromMain::Request { request, .. } = FromMain::decode(&request).unwrap() else { panic!() };
    let given_up = theirs.next().await.unwrap();
    assert_eq!(FromMain::decode(&given_up), Ok(FromMain::GivenUp { request }));
    theirs.send(&[FromPeer::Reply { request, payload: "late".into() }]).await;
    theirs.send(&[call_nobody(2)]).await;
    theirs.next().await.unwrap();
    let late = |peer: &PeerStatus| peer.sessions.iter().map(|session| session.counts.late).sum::<u64>();
    assert_eq!(stage.main.peers().list().iter().map(late).sum::<u64>(), 1);
}

/// It is answered after all that was sent before.
fn call_nobody(id: u32) -> FromPeer<'static> {
    FromPeer::Unsubscribe { id, subscription: 1 }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_jobs_go_from_one_program_to_another() {
    let stage = Stage::new(FILE).await;
    let (polite, theirs) = (stage.connect("app:polite").await, stage.connect("sidecar:theirs").await);
    let mut news = polite.subscribe("news.*").await.unwrap();
    assert_eq!(theirs.publish("news.today", "sunny").await.unwrap().delivered, 1);
    let event = news.next().await.unwrap();
    assert_eq!(
        (event.topic.as_str(), event.sender.as_str(), event.payload),
        ("news.today", "sidecar:theirs", "sunny".into())
    );
    assert!(theirs.publish("other", "").await.is_err());

    let (puts, takes) = (polite.queue("jobs").unwrap(), theirs.queue("jobs").unwrap());
    let done = tokio::spawn(async move { puts.put_until_done("work").await });
    let job = takes.take().await.unwrap();
    assert_eq!((job.sender(), job.deliveries()), ("app:polite", 1));
    drop(job);
    let job = takes.take().await.unwrap();
    assert_eq!((job.payload().as_ref(), job.deliveries()), (&b"work"[..], 2));
    job.done();
    assert_eq!(done.await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_sent_is_carried_out_each_time_also_if_it_leaves_right_after_it() {
    let stage = Stage::new(FILE).await;
    let mut news = stage.main.client().subscribe("news.*").unwrap();
    let mut jobs = stage.main.client().queue("jobs").unwrap();
    for number in 0..50 {
        let number = number.to_string();
        let payload = || Bytes::from(number.clone());
        let mut raw = stage.raw("app:polite").await;
        // The first would be answered, the second not.
        raw.send(&[
            FromPeer::Put { id: 1, timeout_ms: 0, until_done: false, queue: "jobs", payload: payload() },
            FromPeer::Publish { id: 0, timeout_ms: 0, to: None, topic: "news.now", payload: payload() },
        ])
        .await;
        drop(raw);
        stage.sessions_become(0).await;
        let event = timeout(PATIENCE, news.next()).await.unwrap().unwrap();
        assert_eq!((&*event.sender, &*event.payload), ("app:polite", number.as_bytes()));
        let job = timeout(PATIENCE, jobs.take()).await.unwrap().unwrap();
        assert_eq!(&**job.payload(), number.as_bytes());
        job.done();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_passes_on_what_was_counted_elsewhere() {
    let stage = Stage::new(FILE).await;
    let (polite, theirs) = (stage.connect("app:polite").await, stage.connect("sidecar:theirs").await);
    let mut news = polite.subscribe("news.*").await.unwrap();
    theirs.publish_after(4, "news.today", "sunny").await.unwrap();
    theirs.publish("news.today", "rain").await.unwrap();
    let lost = [news.next().await.unwrap().lost, news.next().await.unwrap().lost];
    assert_eq!(lost, [4, 0]);

    let (puts, takes) = (polite.queue("jobs").unwrap(), theirs.queue("jobs").unwrap());
    let done = tokio::spawn(async move { puts.put_until_done_after(1, "work").await });
    let job = takes.take().await.unwrap();
    assert_eq!(job.deliveries(), 2);
    job.done();
    assert_eq!(done.await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_can_be_answered_with_an_error_as_if_main_had_given_it() {
    let stage = Stage::new(FILE).await;
    let theirs = stage.connect("sidecar:theirs").await;
    let mut requests = theirs.serve("theirs@1", &["do"]).await.unwrap();
    let errors = [
        Error::NoProvider("no node serves `theirs@1`".to_owned()),
        Error::Timeout,
        Error::TooLarge { bytes: 7, allowed: 5 },
        Error::handler("own", "a handler's"),
    ];
    for error in errors {
        let client = stage.main.client().clone();
        let call = tokio::spawn(async move { client.call("theirs@1", "do", "").await });
        requests.next().await.unwrap().refuse(error.clone()).await;
        assert_eq!(call.await.unwrap(), Err(error));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_belongs_to_the_next_event_or_job() {
    let stage = Stage::new(FILE).await;
    for (version, text) in [(2, "COUNTED is of version 3"), (3, "COUNTED before UNSUBSCRIBE")] {
        let mut raw = stage.speaks("app:polite", version).await;
        raw.send(&[FromPeer::Counted { count: 1 }, call_nobody(2)]).await;
        assert_eq!(raw.closed().await, ("protocol".to_owned(), text.to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_into_a_stored_queue_returns_once_its_provider_has_the_job() {
    let stage = Stage::new(FILE).await;
    let (polite, theirs) = (stage.connect("app:polite").await, stage.connect("sidecar:theirs").await);
    let mut requests = theirs.serve("store@1", &["kept"]).await.unwrap();
    let keeper = theirs.clone();
    let kept = tokio::spawn(async move {
        let request = requests.next().await.unwrap();
        assert_eq!((request.operation(), request.sender()), ("kept", "app:polite"));
        let job = request.payload().clone();
        request.answer(Ok::<_, HandlerError>("")).await;
        keeper.queue("kept").unwrap().put_until_done(job).await
    });
    polite.queue("kept").unwrap().put("precious").await.unwrap();
    let job = theirs.queue("kept").unwrap().take().await.unwrap();
    assert_eq!(job.payload().as_ref(), b"precious");
    job.done();
    assert_eq!(kept.await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_main_and_the_operator_end_sessions_with_the_reason() {
    let stage = Stage::new(FILE).await;
    let (ended, stopped) = (stage.connect("app:polite").await, stage.connect("app:polite").await);
    let session = weir_host::peers::SessionId(ended.session());
    assert!(stage.main.peers().end(session) && !stage.main.peers().end(session));
    assert!(ended.closed().await.to_string().contains("ended"), "{}", ended.closed().await);
    let Stage { main, path, .. } = stage;
    main.shutdown().await.unwrap();
    assert!(stopped.closed().await.to_string().contains("stopping"), "{}", stopped.closed().await);
    let options = Options::new("app:polite".parse().unwrap());
    assert!(weir_peer::Peer::connect(&path, options).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_a_job_ends_when_the_operator_takes_the_grant_back() {
    let stage = Stage::new(FILE).await;
    let theirs = stage.connect("sidecar:theirs").await;
    let jobs = theirs.queue("jobs").unwrap();
    let taking = tokio::spawn(async move { jobs.take().await.map(drop) });
    tokio::task::yield_now().await;
    // What is answered later was sent later.
    theirs.publish("news.of", "").await.unwrap();
    stage.reload(&FILE.replace("takes = ['jobs', 'kept']", "takes = ['kept']")).await;
    let taken = timeout(PATIENCE, taking).await.unwrap().unwrap();
    assert_eq!(taken, Err(Error::NoProvider("queue `jobs` gives this peer no more jobs".into())));
}

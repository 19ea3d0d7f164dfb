//! Events and jobs between sessions and extensions, and queues that a session keeps.

use weir_host::{
    Error, ExtensionConfig, Main,
    client::PutOptions,
    config::{QueueConfig, QueuePolicy, SubscribeGrant},
    control::ExtensionState,
    peers::PeerConfig,
    traffic::QueueStatus,
};

use super::{
    super::support::{extension, puppet_with, reached, taken, tell, until},
    event, open, peer_with, request, tell_a, with_peers,
};

fn topics(pattern: &str) -> Vec<SubscribeGrant> {
    vec![pattern.parse::<weir_host::names::TopicPattern>().unwrap().into()]
}

/// Calls `a`, publishes and subscribes, puts and takes.
fn player() -> PeerConfig {
    peer_with("app:player", |player| {
        player.wants = vec!["a@1".parse().unwrap()];
        player.publishes = vec!["player.>".parse().unwrap()];
        player.subscribes = topics("a.>");
        player.puts = vec!["q".parse().unwrap()];
        player.takes = vec!["q".parse().unwrap()];
    })
}

fn a() -> ExtensionConfig {
    puppet_with("a", |a| {
        a.publishes = vec!["a.>".parse().unwrap()];
        a.subscribes = topics("player.>");
        a.puts = vec!["q".parse().unwrap()];
        a.takes = vec!["q".parse().unwrap()];
    })
}

async fn start_with_queue(
    extensions: Vec<ExtensionConfig>,
    peers: Vec<PeerConfig>,
    change: impl FnOnce(&mut QueueConfig),
) -> Main {
    let mut config = with_peers(extensions, peers);
    let mut queue = QueueConfig::default();
    queue.dead_letter = Some("dead".parse().unwrap());
    change(&mut queue);
    config.queues.insert("q".parse().unwrap(), queue);
    Main::builder(config).start().await.unwrap()
}

fn status(main: &Main) -> QueueStatus {
    main.control().queues().into_iter().find(|status| status.queue.as_str() == "q").unwrap()
}

async fn start(extensions: Vec<ExtensionConfig>, peers: Vec<PeerConfig>) -> Main {
    start_with_queue(extensions, peers, |_| {}).await
}

#[tokio::test]
async fn events_go_both_ways_under_the_names_of_their_senders() {
    let main = start(vec![a()], vec![player()]).await;
    let (first, second) = (open(&main, "app:player"), open(&main, "app:player"));
    for session in [&first, &second] {
        session.subscribe("a.>").unwrap();
    }
    tell(&main, "a", "publish a.x 1").await.unwrap();
    tell(&main, "a", "publish-to app:player a.y 2").await.unwrap();
    for session in [&first, &second] {
        for (topic, payload) in [("a.x", "1"), ("a.y", "2")] {
            let event = event(session).await;
            assert_eq!(
                (&*event.sender, event.topic.as_str(), &event.payload[..]),
                ("a", topic, payload.as_bytes())
            );
        }
    }

    tell(&main, "a", "subscribe player.*").await.unwrap();
    let receipt = first.client().publish("player.on", "now").await.unwrap();
    assert_eq!((receipt.delivered, receipt.shed, receipt.refused), (1, 0, 0));
    taken(&main, "a").await;
    assert_eq!(tell_a(&first, "heard").await.unwrap(), "event: player.on 1 0 now");
    assert_eq!(tell_a(&first, "sender").await.unwrap(), "app:player");
    assert!(matches!(first.client().publish("a.x", "").await, Err(Error::PermissionDenied(_))));
    assert!(matches!(first.subscribe("player.on"), Err(Error::PermissionDenied(_))));
}

#[tokio::test]
async fn a_subscription_of_a_client_is_one_of_its_session() {
    let main = start(vec![a()], vec![player()]).await;
    let session = open(&main, "app:player");
    let mut events = session.client().subscribe("a.*").unwrap();
    tell(&main, "a", "publish a.x 1").await.unwrap();
    assert_eq!(events.next().await.unwrap().sender, "a");
    drop(session);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn jobs_go_both_ways_and_come_back_from_a_session_that_ends() {
    let main = start(vec![a()], vec![player()]).await;
    let session = open(&main, "app:player");
    session.client().queue("q").unwrap().put("by the peer").await.unwrap();
    tell(&main, "a", "take q 1").await.unwrap();
    until(|| status(&main).delivered == 1).await;
    let heard = tell_a(&session, "heard").await.unwrap();
    assert!(heard.starts_with("job: ") && heard.ends_with(" 1 by the peer"), "{heard}");
    assert_eq!(tell_a(&session, "sender").await.unwrap(), "app:player");

    tell(&main, "a", "put q by the extension").await.unwrap();
    let mut queue = session.client().queue("q").unwrap();
    let job = queue.take().await.unwrap();
    assert_eq!((&*job.sender(), &job.payload()[..], job.deliveries()), ("a", &b"by the extension"[..], 1));
    // A connection drops both, in this order.
    drop(session);
    drop(job);
    assert!(queue.take().await.is_none());
    let job = main.client().queue("q").unwrap().take().await.unwrap();
    assert_eq!((&*job.sender(), job.deliveries()), ("a", 2));
}

/// Keeps the jobs of `q`.
fn store_peer() -> PeerConfig {
    peer_with("sidecar:store", |store| {
        store.fulfills = vec!["store@1".parse().unwrap()];
        store.puts = vec!["q".parse().unwrap()];
    })
}

/// Takes jobs, and publishes each under `worked.b`.
fn worker() -> ExtensionConfig {
    let mut worker = extension("b", "worker");
    worker.takes = vec!["q".parse().unwrap()];
    worker.publishes = vec!["worked.>".parse().unwrap()];
    worker.config.extend([("queue".to_owned(), "q".to_owned()), ("mode".to_owned(), "next".to_owned())]);
    worker
}

#[tokio::test]
async fn a_job_of_a_stored_queue_goes_through_its_store_to_a_reader() {
    let main = start_with_queue(vec![a(), worker()], vec![store_peer()], |queue| {
        queue.store = Some("store@1".parse().unwrap());
        queue.when_full = QueuePolicy::Block;
        queue.max_deliveries = 2;
    })
    .await;
    let mut worked = main.client().subscribe("worked.b").unwrap();
    let refused = tell(&main, "a", "put q early").await.unwrap_err();
    assert!(refused.contains("NoProvider"), "nothing is stored yet: {refused}");

    let session = open(&main, "sidecar:store");
    session.serve("store@1", &["q".to_owned()]).unwrap();
    let keep = async {
        let kept = request(&session).await;
        assert_eq!((&*kept.sender, kept.contract.as_str(), kept.operation.as_str()), ("a", "store@1", "q"));
        let payload = kept.payload.clone();
        assert!(kept.answer(Ok("".into())));
        payload
    };
    let (put, payload) = tokio::join!(tell(&main, "a", "put q job"), keep);
    put.unwrap();
    assert_eq!(payload, "job");

    let queue = session.client().queue("q").unwrap();
    queue.put_until_done(payload, PutOptions::default()).await.unwrap();
    let line = String::from_utf8(worked.next().await.unwrap().payload.to_vec()).unwrap();
    assert!(line.ends_with(" 1 job"), "{line}");

    // The worker is not restarted, so another reader has it the second time.
    let dies = queue.put_until_done("die", PutOptions::default());
    let again = async {
        reached(&main, "b", ExtensionState::Failed).await;
        let job = main.client().queue("q").unwrap().take().await.unwrap();
        assert_eq!((&*job.sender(), job.deliveries()), ("sidecar:store", 2));
        drop(job);
    };
    let (dead, ()) = tokio::join!(dies, again);
    assert!(matches!(&dead, Err(Error::Handler(error)) if error.code == "dead"), "{dead:?}");
}

#[tokio::test]
async fn jobs_of_a_store_that_leaves_are_taken_out_and_those_in_hand_are_done() {
    let main = start_with_queue(vec![a()], vec![store_peer()], |queue| {
        queue.store = Some("store@1".parse().unwrap());
        queue.when_full = QueuePolicy::Block;
    })
    .await;
    let session = open(&main, "sidecar:store");
    session.serve("store@1", &["q".to_owned()]).unwrap();
    let queue = session.client().queue("q").unwrap();
    let in_hand = async {
        let job = main.client().queue("q").unwrap().take().await.unwrap();
        assert_eq!(job.payload(), "1");
        job
    };
    // Dropped with its connection.
    let first = queue.put_until_done("1", PutOptions::default());
    let second = queue.put_until_done("2", PutOptions::default());
    let job = {
        tokio::pin!(first, second);
        tokio::select! {
            biased;
            outcome = &mut first => panic!("{outcome:?}"),
            outcome = &mut second => panic!("{outcome:?}"),
            job = in_hand => job,
        }
    };
    drop(session);
    until(|| status(&main).waiting == 0).await;
    job.done();
    assert_eq!(status(&main).done, 1);
}

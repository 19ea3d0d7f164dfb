//! Programs that want too much at once, or take events slowly.

use weir_host::names::Topic;
use weir_peer::frame::{FromMain, FromPeer};

use crate::support::{Stage, call};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
subscribes = ['>']
limits.in-flight = 64
limits.subscriptions = 100
limits.message-rate = 1_000_000
";

#[tokio::test(flavor = "multi_thread")]
async fn more_calls_under_way_than_allowed_are_refused_one_by_one() {
    let stage = Stage::new(FILE).await;
    let mut raw = stage.raw("app:polite").await;
    let calls: Vec<_> = (1..=66).map(|id| call(id, "never", "")).collect();
    raw.send(&calls).await;
    for id in [65, 66] {
        let frame = raw.next().await.unwrap();
        let FromMain::Error { id: of, error } = FromMain::decode(&frame).unwrap() else { panic!() };
        assert_eq!((of, error.to_string()), (id, "limit `in-flight` exceeded: 65 of 64".to_owned()));
    }
    raw.send(&[FromPeer::Cancel { id: 1 }, call(67, "echo", "now")]).await;
    let frame = raw.next().await.unwrap();
    assert!(matches!(FromMain::decode(&frame), Ok(FromMain::Answer { id: 67, .. })), "{frame:?}");
    drop(raw);
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_beyond_the_limit_are_refused_and_end_with_the_session() {
    let stage = Stage::new(FILE).await;
    let mut raw = stage.raw("app:polite").await;
    let patterns: Vec<String> = (0..10_000).map(|number| format!("t.{number}")).collect();
    let mut granted = 0;
    for (at, pattern) in patterns.iter().enumerate() {
        let id = u32::try_from(at).unwrap() + 1;
        raw.send(&[FromPeer::Subscribe { id, pattern }]).await;
        let frame = raw.next().await.unwrap();
        match FromMain::decode(&frame).unwrap() {
            FromMain::Answer { .. } => granted += 1,
            FromMain::Error { error, .. } => {
                assert_eq!(error.to_string(), "limit `subscriptions` exceeded: 101 of 100");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(granted, 100);
    let topic: Topic = "t.7".parse().unwrap();
    let subscribers = || stage.main.client().publish(topic.as_str(), "");
    assert_eq!(subscribers().await.unwrap().delivered, 1);
    drop(raw);
    stage.sessions_become(0).await;
    assert_eq!(subscribers().await.unwrap().delivered, 0);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_as_far_as_the_credit_goes_and_the_oldest_of_the_others_are_counted_as_lost() {
    let stage = Stage::new(FILE).await;
    let mut raw = stage.raw("app:polite").await;
    raw.send(&[FromPeer::Subscribe { id: 1, pattern: "a" }]).await;
    raw.next().await.unwrap();
    for number in 0..1000_u32 {
        stage.main.client().publish("a", number.to_string()).await.unwrap();
    }
    // No credit: an answer comes at once, and no event before it.
    raw.send(&[call(2, "echo", ""), FromPeer::Credit { events: 3 }, call(3, "echo", "")]).await;
    let mut seen = Vec::new();
    let mut answers = 0;
    while seen.len() < 3 || answers < 2 {
        let frame = raw.next().await.unwrap();
        match FromMain::decode(&frame).unwrap() {
            FromMain::Event { lost, sequence, payload, sender, .. } => {
                assert_eq!(sender, "main");
                seen.push((lost, sequence, String::from_utf8(payload.to_vec()).unwrap()));
            }
            FromMain::Answer { .. } => answers += 1,
            other => panic!("{other:?}"),
        }
    }
    let first = &seen[0];
    assert_eq!(first.0 + 1, first.1, "{seen:?}");
    assert!(first.0 > 0 && seen[1].0 == 0 && seen[2].1 == first.1 + 2, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_read_nothing_for_too_long_finds_the_reason_where_it_reads_again() {
    let stage = Stage::new(&format!("{FILE}limits.stall-timeout = '1s'")).await;
    let mut raw = stage.raw("app:polite").await;
    let asking = async {
        for id in 1..1000 {
            raw.send(&[call(id, "big", "")]).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = asking => {}
        () = stage.sessions_become(0) => {}
    }
    // Main has closed the connection then.
    stage.main.shutdown().await.unwrap();
    let closed = ("stalled".to_owned(), "the program has read nothing for 1s".to_owned());
    assert_eq!(raw.closed().await, closed);
}

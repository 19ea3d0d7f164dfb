//! Plain streams that behave.

use bytes::BytesMut;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::support::{PATIENCE, Plain, Stage, becomes, soon, token_of};

const FILE: &str = "
[queue.jobs]
messages = 100
[topic.'kept']
retain = true

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>']
subscribes = ['news.>', 'kept']
puts = ['jobs']
limits.message-size = '2 KiB'
limits.message-rate = 100_000
limits.stall-timeout = '1s'
";

fn opening(rest: &str) -> String {
    format!("app:polite {} {rest}", token_of("app:polite"))
}

async fn opened(stage: &Stage, rest: &str) -> Plain {
    let mut plain = stage.stream(&opening(rest)).await;
    assert_eq!(plain.line().await.as_deref(), Some("ok"));
    plain
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_published_and_heard_as_they_are() {
    let stage = Stage::new("", FILE).await;
    let mut hears = opened(&stage, "subscribe news.a lines").await;
    let mut subscriber = stage.main.client().subscribe("news.a").unwrap();
    let mut says = opened(&stage, "publish news.a lines").await;
    for line in ["1\n", "\n{\"a\"", ": 1}\r\nlast without an end"] {
        says.send(line.as_bytes()).await;
    }
    says.end().await;
    assert_eq!(says.lines().await, ["done 4"]);
    for line in ["1", "", "{\"a\": 1}\r"] {
        assert_eq!(hears.line().await.as_deref(), Some(line));
    }
    assert_eq!(hears.line().await.as_deref(), Some("last without an end"));
    assert_eq!(soon(subscriber.next()).await.unwrap().sender, "app:polite");
    // The end of its input ends it.
    hears.end().await;
    assert_eq!(hears.line().await, None);
    stage.sessions_become(0).await;
    assert_eq!(stage.main.client().publish("news.b", "").await.unwrap().delivered, 0);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_with_a_length_carry_any_bytes_both_ways() {
    let stage = Stage::new("", FILE).await;
    let mut hears = opened(&stage, "subscribe news.a length").await;
    let mut says = opened(&stage, "publish news.a length").await;
    let mut all = Vec::new();
    for payload in [&b""[..], b"\n", &[0, 255], &[7; 2048]] {
        all.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        all.extend_from_slice(payload);
    }
    // Byte by byte, as a slow network brings them.
    for byte in &all[..20] {
        says.send(&[*byte]).await;
    }
    says.send(&all[20..]).await;
    says.end().await;
    assert_eq!(says.lines().await, ["done 4"]);
    let mut heard = hears.input.to_vec();
    while heard.len() < all.len() {
        let mut more = BytesMut::new();
        assert_ne!(soon(hears.io.read_buf(&mut more)).await.unwrap(), 0);
        heard.extend_from_slice(&more);
    }
    assert_eq!(heard, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_put_and_a_stream_without_frames_is_done_at_once() {
    let stage = Stage::new("", FILE).await;
    let mut puts = opened(&stage, "put jobs lines").await;
    puts.send(b"1\n2\n").await;
    puts.end().await;
    assert_eq!(puts.lines().await, ["done 2"]);
    let mut queue = stage.main.client().queue("jobs").unwrap();
    for payload in ["1", "2"] {
        let job = queue.try_take().unwrap();
        assert_eq!((&**job.payload(), &*job.sender()), (payload.as_bytes(), "app:polite"));
        job.done();
    }
    let mut none = opened(&stage, "publish news.a length").await;
    none.end().await;
    assert_eq!(none.lines().await, ["done 0"]);
    // All in one piece, as a shell sends it.
    let mut shell = stage.stream(&format!("{}\n1\n2\n3", opening("put jobs lines"))).await;
    shell.end().await;
    assert_eq!(shell.lines().await, ["ok", "done 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_value_comes_first_and_others_once() {
    let stage = Stage::new("", FILE).await;
    stage.main.client().publish("kept", "1").await.unwrap();
    let (mut first, mut second) =
        (opened(&stage, "subscribe kept lines").await, opened(&stage, "subscribe kept lines").await);
    for plain in [&mut first, &mut second] {
        assert_eq!(plain.line().await.as_deref(), Some("1"));
    }
    stage.main.client().publish("kept", "2").await.unwrap();
    for plain in [&mut first, &mut second] {
        assert_eq!(plain.line().await.as_deref(), Some("2"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_with_a_newline_is_no_line_and_counts_as_lost() {
    let stage = Stage::new("", FILE).await;
    let mut hears = opened(&stage, "subscribe news.a lines").await;
    for payload in ["1", "a\nb", "\n", "2"] {
        stage.main.client().publish("news.a", payload).await.unwrap();
    }
    assert_eq!(hears.line().await.as_deref(), Some("1"));
    assert_eq!(hears.line().await.as_deref(), Some("2"));
    let counts =
        || stage.main.peers().list().iter().find(|peer| peer.name.as_str() == "app:polite").unwrap().counts;
    becomes(|| (counts().received, counts().shed) == (2, 2), || format!("{:?}", counts())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_loses_the_oldest_and_each_is_counted() {
    const EVENTS: u64 = 3000;
    let stage = Stage::new("buffer = '64 KiB'", &FILE.replace("'1s'", "'20s'")).await;
    let mut slow = opened(&stage, "subscribe news.a lines").await;
    for number in 0..EVENTS {
        stage.main.client().publish("news.a", format!("{number} {}", "x".repeat(1000))).await.unwrap();
        if number % 64 == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
    let mut received = 0;
    loop {
        received += 1;
        let line = slow.line().await.unwrap();
        if line.starts_with(&format!("{} ", EVENTS - 1)) {
            break;
        }
    }
    let counts =
        || stage.main.peers().list().iter().find(|peer| peer.name.as_str() == "app:polite").unwrap().counts;
    becomes(|| counts().received + counts().shed == EVENTS, || format!("{:?}", counts())).await;
    assert_eq!(counts().received, received);
    assert!(counts().shed > EVENTS / 2, "{:?}", counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_is_ended_after_the_stall_timeout() {
    let stage = Stage::new("buffer = '1 MiB'", FILE).await;
    let began = std::time::Instant::now();
    let _stalled = opened(&stage, "subscribe news.a length").await;
    while stage.sessions() > 0 {
        stage.main.client().publish("news.a", vec![0; 2000]).await.unwrap();
        assert!(began.elapsed() < PATIENCE);
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() > std::time::Duration::from_millis(900));
    assert_eq!(stage.main.client().publish("news.a", Value::Null.to_string()).await.unwrap().delivered, 0);
    stage.works().await;
}

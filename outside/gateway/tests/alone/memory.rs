//! What messages that have not come, and answers that nobody reads, cost in memory.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    alone,
    app::App,
    process::private_memory,
    support::{Response, Stage, bearer, request},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
subscribes = ['>']
limits.sessions = 200
limits.in-flight = 64
limits.message-rate = 1_000_000
limits.stall-timeout = '1s'
limits.message-size = '64 MiB'
limits.inbox.bytes = '64 MiB'

[peer.'app:posts']
tokens = ['HASH']
wants = ['echo@1']
limits.sessions = 4
limits.message-rate = 1_000_000
";

/// Bytes that come one at a time.
const IN_PIECES: usize = 256 << 10;

/// So many calls, numbered from this id, each with an answer of 133,000 bytes.
fn large_calls(first: u64, calls: u64) -> Vec<Value> {
    (first..first + calls).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "echo@1/big" })).collect()
}

/// The most that the process had while this ran, beyond what it had before.
async fn most_during(work: impl Future<Output = ()>) -> u64 {
    let (before, most) = (private_memory(), AtomicU64::new(0));
    let watch = async {
        loop {
            most.fetch_max(private_memory(), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! { () = work => {} () = watch => {} }
    most.into_inner().saturating_sub(before)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_length_of_a_frame_reserves_no_memory() {
    let _alone = alone().await;
    let stage = Stage::new("", FILE).await;
    stage.works().await;
    let before = private_memory();
    let mut all = Vec::new();
    for _ in 0..100 {
        let mut app = stage.app("app:polite").await;
        app.send_bytes(&[&[0x81, 0xff][..], &(64_u64 << 20).to_be_bytes(), &[0; 4], &[b' '; 1000]].concat())
            .await;
        app.send_bytes(b"{").await;
        all.push(app);
    }
    stage.works().await;
    let grown = private_memory().saturating_sub(before);
    assert!(grown < 100 * (128 << 10), "{grown} bytes for 100 messages that have not come");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_in_chunks_of_a_byte_costs_its_bytes() {
    let _alone = alone().await;
    let stage = Stage::new("", FILE).await;
    stage.works().await;
    let headers = [
        bearer("app:polite"),
        ("Content-Type", "application/json".to_owned()),
        ("Transfer-Encoding", "chunked".to_owned()),
    ];
    let head = request("POST", "/v1/peers/app:polite/rpc", &headers, "");
    let mut stream = stage.connect().await;
    let grown = most_during(async {
        stream.write_all(head.as_bytes()).await.unwrap();
        let piece = b"1\r\n \r\n".repeat(16 << 10);
        for _ in 0..IN_PIECES >> 14 {
            stream.write_all(&piece).await.unwrap();
        }
        // All but the end is there.
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"echo@1/echo","params":[1]}"#;
        stream.write_all(format!("{:x}\r\n{call}\r\n", call.len()).as_bytes()).await.unwrap();
        stream.write_all(b"0\r\n\r\n").await.unwrap();
        let answer = Response::read(&mut stream).await.unwrap();
        assert_eq!((answer.status, answer.json()["result"].clone()), (200, json!([1])), "{answer:?}");
    })
    .await;
    assert!(grown < 8 << 20, "{grown} bytes for a body of {IN_PIECES}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_in_fragments_of_a_byte_cost_their_bytes() {
    let _alone = alone().await;
    let stage = Stage::new("", FILE).await;
    stage.works().await;
    let mut app = stage.app("app:polite").await;
    let grown = most_during(async {
        app.send_bytes(&[0x01, 0x81, 0, 0, 0, 0, b' ']).await;
        let piece = [0x00, 0x81, 0, 0, 0, 0, b' '].repeat(16 << 10);
        for _ in 0..IN_PIECES >> 14 {
            app.send_bytes(&piece).await;
        }
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"echo@1/echo","params":[1]}"#;
        app.send_bytes(&[&[0x80, 0x80 | u8::try_from(call.len()).unwrap(), 0, 0, 0, 0][..], call].concat())
            .await;
        assert_eq!(app.answer(1).await, Ok(json!([1])));
    })
    .await;
    assert!(grown < 8 << 20, "{grown} bytes for a message of {IN_PIECES}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_does_not_read_is_ended_and_costs_what_it_has_under_way() {
    let _alone = alone().await;
    let stage = Stage::new("", FILE).await;
    stage.works().await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/big" });
    for message in [call, large_calls(1, 64).into()] {
        let mut app = stage.app("app:polite").await;
        let began = Instant::now();
        // Each answer has 133,000 bytes; none is read.
        let flood = async {
            while stage.sessions() > 0 {
                let _full =
                    tokio::time::timeout(Duration::from_millis(50), app.send(message.to_string())).await;
            }
        };
        let grown = most_during(flood).await;
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(8), "{took:?}");
        assert!(grown < 3 * 64 * 133_400 + (8 << 20), "{grown} bytes");
    }
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_are_kept_open_hold_no_more_answers_than_an_app_may_have_under_way() {
    let _alone = alone().await;
    let stage = Stage::new("", FILE).await;
    stage.works().await;
    let mut app = stage.app("app:polite").await;
    let grown = most_during(async {
        for number in 1..=60 {
            let mut batch = large_calls(100 * number + 1, 63);
            batch.push(json!({ "jsonrpc": "2.0", "id": 100 * number, "method": "echo@1/never" }));
            app.send(Value::from(batch).to_string()).await;
        }
        for _ in 0..60 {
            app.text().await;
        }
    })
    .await;
    assert!(grown < 4 * 64 * 133_400 + (8 << 20), "{grown} bytes");
    app.leave().await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_nobody_reads_cost_each_app_its_buffer() {
    let _alone = alone().await;
    let stage = Stage::new("buffer = '64 KiB'", &FILE.replace("'1s'", "'20s'")).await;
    stage.works().await;
    let mut apps: Vec<App> = Vec::new();
    for _ in 0..50 {
        let mut app = stage.app("app:polite").await;
        app.call("events.subscribe", json!({ "pattern": ">" })).await.unwrap();
        apps.push(app);
    }
    let payload = "x".repeat(1000);
    let grown = most_during(async {
        for number in 0..10_000 {
            stage.main.client().publish("a", payload.clone()).await.unwrap();
            if number % 64 == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    })
    .await;
    // Beside the buffer there is a piece of 64 KiB for the socket.
    assert!(grown < 50 * (400 << 10) + (8 << 20), "{grown} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_posts_that_nobody_reads_count_among_the_sessions() {
    let _alone = alone().await;
    let stage = Stage::new("", FILE).await;
    stage.works().await;
    let batch = Value::from(large_calls(1, 64)).to_string();
    let headers = [bearer("app:posts"), ("Content-Type", "application/json".to_owned())];
    let text = request("POST", "/v1/peers/app:posts/rpc", &headers, &batch);
    let (mut all, mut begun) = (Vec::new(), 0);
    let grown = most_during(async {
        for _ in 0..40 {
            let mut stream = stage.connect().await;
            stream.write_all(text.as_bytes()).await.unwrap();
            // The answer has begun, and the rest of it is not read.
            let mut status = [0; 12];
            stream.read_exact(&mut status).await.unwrap();
            begun += usize::from(status.ends_with(b"200"));
            all.push(stream);
        }
    })
    .await;
    assert_eq!(begun, 4, "{grown} bytes");
    assert!(grown < 4 * 3 * 64 * 133_400 + (8 << 20), "{grown} bytes");
    // Nobody waits for them for ever.
    let began = Instant::now();
    stage.sessions_become(0).await;
    assert!(began.elapsed() < Duration::from_secs(14));
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_strangers_costs_little_each() {
    let _alone = alone().await;
    let stage = Stage::new("", FILE).await;
    stage.works().await;
    let mut all = Vec::new();
    let grown = most_during(async {
        for _ in 0..600 {
            let mut stream = stage.connect().await;
            let _evicted =
                stream.write_all(format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(12_000)).as_bytes()).await;
            all.push(stream);
        }
    })
    .await;
    assert!(grown < 256 * (48 << 10), "{grown} bytes");
    stage.works().await;
}

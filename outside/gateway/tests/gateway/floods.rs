//! Apps that want too much, beside one that must not suffer.

use std::time::{Duration, Instant};

use futures_util::SinkExt;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::tungstenite::Message;

use crate::{
    app::App,
    support::{PATIENCE, Stage, becomes, token_of},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>']
subscribes = ['news.>']
limits.stall-timeout = '1s'
limits.sessions = 64

[peer.'app:slow']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>']
limits.message-rate = 100
limits.message-size = '64 KiB'
";

/// Sends for ever.
async fn flood(app: &mut App, message: Message) {
    while app.socket.send(message.clone()).await.is_ok() {}
}

/// It is served while the others do what they do.
async fn beside(polite: &mut App, floods: impl Future<Output = ()>) {
    let served = async {
        for _ in 0..50 {
            polite.is_served().await;
        }
    };
    tokio::select! { () = floods => panic!("the flood ended"), () = served => {} }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_pings_pongs_and_empty_fragments_holds_up_nobody() {
    let stage = Stage::new("", FILE).await;
    let mut polite = stage.app("app:polite").await;
    let (mut pings, mut pongs, mut parts) =
        (stage.app("app:slow").await, stage.app("app:slow").await, stage.app("app:slow").await);
    let fragments = async {
        // A text that begins and goes on without end, in frames without a byte.
        let many: Vec<u8> = [0x00, 0x80, 0, 0, 0, 0].repeat(1000);
        parts.send_bytes(&[0x01, 0x80, 0, 0, 0, 0]).await;
        loop {
            parts.send_bytes(&many).await;
        }
    };
    let floods = async {
        tokio::join!(
            flood(&mut pings, Message::Ping("x".into())),
            flood(&mut pongs, Message::Pong("x".into())),
            fragments
        );
    };
    beside(&mut polite, floods).await;
    drop((pings, pongs, parts));
    stage.sessions_become(1).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_read_at_the_rate_whatever_they_are() {
    let stage = Stage::new("", FILE).await;
    let mut slow = stage.app("app:slow").await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/echo" }).to_string();
    for messages in [call.clone(), "x".to_owned(), format!("[{call},{call},{call},{call}]")] {
        let each = if messages.starts_with('[') { 4 } else { 1 };
        let (began, count) = (Instant::now(), 200 / each);
        for _ in 0..count {
            slow.send(messages.clone()).await;
        }
        for _ in 0..count {
            slow.text().await;
        }
        let took = began.elapsed();
        assert!(
            took > Duration::from_millis(1400) && took < Duration::from_secs(6),
            "{took:?} for {messages}"
        );
    }
    // Pings, too, and notifications.
    let began = Instant::now();
    for number in 0..150 {
        let message = if number % 2 == 0 {
            Message::Ping("x".into())
        } else {
            Message::text(call.replace("\"id\":1,", ""))
        };
        slow.socket.send(message).await.unwrap();
    }
    slow.send(call).await;
    slow.text().await;
    assert!(began.elapsed() > Duration::from_millis(1200), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_events_from_one_app_leaves_calls_of_another_served() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, mut hears, mut says) =
        (stage.app("app:polite").await, stage.app("app:polite").await, stage.app("app:polite").await);
    hears.call("events.subscribe", json!({ "pattern": "news.>" })).await.unwrap();
    let publish = json!({ "jsonrpc": "2.0", "method": "events.publish", "params": { "topic": "news.a", "payload": ["x".repeat(1000)] } });
    let reads = async {
        loop {
            hears.text().await;
        }
    };
    let floods = async {
        tokio::join!(flood(&mut says, Message::text(publish.to_string())), reads);
    };
    beside(&mut polite, floods).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_reads_nothing_is_closed_after_the_stall_timeout() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, mut stalls) = (stage.app("app:polite").await, stage.app("app:polite").await);
    let began = Instant::now();
    for _ in 0..20 {
        stalls.ask("echo@1/big", json!([])).await;
    }
    while stage.sessions() > 1 {
        assert!(began.elapsed() < PATIENCE);
        polite.is_served().await;
    }
    let took = began.elapsed();
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(5), "{took:?}");
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_reads_slowly_is_not_one_that_reads_nothing() {
    let stage = Stage::new("", &FILE.replace("'1s'", "'2s'")).await;
    let mut slow = stage.app("app:polite").await;
    for _ in 0..5 {
        slow.ask("echo@1/big", json!([])).await;
    }
    let mut received = Vec::new();
    let began = Instant::now();
    // Five answers of 133,000 bytes in about five seconds, while the stall timeout is two.
    while received.len() < 5 * 133_000 {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let mut piece = [0; 4096];
        let read = slow.socket.get_mut().read(&mut piece).await.unwrap();
        assert_ne!(read, 0, "closed after {:?} and {} bytes", began.elapsed(), received.len());
        received.extend_from_slice(&piece[..read]);
    }
    assert!(began.elapsed() > Duration::from_secs(4));
    assert_eq!(stage.sessions(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_does_not_answer_a_ping_is_closed() {
    let stage = Stage::new("ping-interval = '1s'", FILE).await;
    let (mut polite, mut silent) = (stage.app("app:polite").await, stage.app("app:polite").await);
    // A program that reads answers pings by itself.
    let reads = async {
        assert_eq!(tokio::time::timeout(Duration::from_millis(3500), polite.text()).await.ok(), None)
    };
    reads.await;
    stage.sessions_become(1).await;
    polite.is_served().await;
    let mut last = Vec::new();
    silent.socket.get_mut().read_to_end(&mut last).await.unwrap();
    assert!(last.ends_with(&[&[0x88, 8][..], &4004_u16.to_be_bytes(), b"silent"].concat()), "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_began_ends_with_it() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    for _ in 0..64 {
        app.ask("echo@1/never", json!([])).await;
    }
    becomes(|| stage.main.client().waiters() == 64, || format!("{}", stage.main.client().waiters())).await;
    drop(app);
    becomes(|| stage.main.client().waiters() == 0, || format!("{}", stage.main.client().waiters())).await;
    stage.sessions_become(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_that_are_nonsense_hold_up_nobody() {
    let stage = Stage::new("", FILE).await;
    let mut polite = stage.app("app:polite").await;
    let nonsense = Message::text(format!("[{}", "[0],".repeat(45_000)));
    let mut apps = Vec::new();
    for _ in 0..8 {
        apps.push(stage.app("app:slow").await);
    }
    let floods = async {
        futures_util::future::join_all(apps.iter_mut().map(|app| flood(app, nonsense.clone()))).await;
    };
    beside(&mut polite, floods).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_of_a_stream_that_sends_without_end_holds_up_nobody() {
    let stage = Stage::new("", FILE).await;
    let mut polite = stage.app("app:polite").await;
    let line = format!("app:polite {} subscribe news.a lines", token_of("app:polite"));
    let (mut floods, bytes) = (stage.stream(&line).await, vec![b'x'; 64 << 10]);
    let flood = async {
        loop {
            floods.send(&bytes).await;
        }
    };
    beside(&mut polite, flood).await;
    assert_eq!(stage.main.client().publish("news.a", "1").await.unwrap().delivered, 1);
    assert_eq!(floods.line().await.as_deref(), Some("ok"));
    assert_eq!(floods.line().await.as_deref(), Some("1"));
}

//! Frames that break the protocol: each ends the session with its reason, and harms nobody else.

use std::{io::Write, net::Shutdown};

use bytes::{Bytes, BytesMut};
use weir_peer::frame::{FromMain, FromPeer};

use crate::support::{Stage, call, hello, token_of};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>']
limits.message-size = '256 KiB'
limits.inbox.bytes = '256 KiB'
";

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_breaks_the_protocol_ends_the_session_with_the_reason() {
    let stage = Stage::new(FILE).await;
    let gigabyte = (1_u32 << 30).to_le_bytes();
    for (bytes, reason) in [
        (&gigabyte[..], "a frame of 1073741824 bytes, where at most 263168 are allowed"),
        (&u32::MAX.to_le_bytes(), "a frame of 4294967295 bytes, where at most 263168 are allowed"),
        (&[0, 0, 0, 0], "an empty frame"),
        (&[1, 0, 0, 0, 0xff], "a frame of the unknown kind 0xff"),
        (&[1, 0, 0, 0, 0x81], "a frame of the unknown kind 0x81"),
        (&[2, 0, 0, 0, 0x11, 1], "CANCEL: `id` is cut short"),
        (&[5, 0, 0, 0, 0x17, 9, 0, 0, 0], "no job 9 is in hand"),
        (&[5, 0, 0, 0, 0x18, 0, 0, 0, 0], "RETURN: `job` is 0"),
    ] {
        let mut raw = stage.raw("app:polite").await;
        raw.send_bytes(bytes).await;
        assert_eq!(raw.closed().await, ("protocol".to_owned(), reason.to_owned()));
    }
    for (frames, reason) in [
        (vec![hello("app:polite", &token_of("app:polite"))], "a second HELLO"),
        (vec![call(7, "never", ""), call(7, "echo", "")], "the id 7 is under way already"),
        (
            vec![call(7, "never", ""), FromPeer::Subscribe { id: 7, pattern: "a" }],
            "the id 7 is under way already",
        ),
    ] {
        let mut raw = stage.raw("app:polite").await;
        raw.send(&frames).await;
        assert_eq!(raw.closed().await, ("protocol".to_owned(), reason.to_owned()));
    }
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_means_nothing_now_is_answered_or_ignored_and_the_session_goes_on() {
    let stage = Stage::new(FILE).await;
    let mut raw = stage.raw("app:polite").await;
    raw.send(&[
        FromPeer::Cancel { id: 99 },
        FromPeer::Reply { request: 99, payload: "late".into() },
        FromPeer::Credit { events: u32::MAX },
        FromPeer::Credit { events: u32::MAX },
        FromPeer::Take { id: 1, jobs: 1, queue: "none" },
        FromPeer::Put { id: 2, timeout_ms: 0, until_done: true, queue: "../etc", payload: "".into() },
        FromPeer::Serve { id: 3, contract: "echo@1", operations: vec!["echo"] },
        FromPeer::Publish { id: 4, timeout_ms: 0, to: None, topic: "a..b", payload: "".into() },
        FromPeer::Publish { id: 0, timeout_ms: 0, to: Some("main"), topic: "a", payload: "".into() },
        FromPeer::Unsubscribe { id: 5, subscription: 1 },
        FromPeer::Subscribe { id: 6, pattern: ">" },
        call(7, "nothing", ""),
        call(8, "echo", vec![b'x'; 256 << 10]),
        call(9, "echo", vec![b'x'; (256 << 10) + 1]),
        call(10, "sender", ""),
    ])
    .await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        let frame = raw.next().await.unwrap();
        answers.push(match FromMain::decode(&frame).unwrap() {
            FromMain::Answer { id, payload } => (id, format!("{} bytes", payload.len())),
            FromMain::Error { id, error } => (id, error.to_string()),
            other => panic!("{other:?}"),
        });
    }
    answers.sort_unstable();
    let answers: Vec<_> = answers.iter().map(|(id, text)| format!("{id}: {text}")).collect();
    let expected = [
        "1: permission denied: `app:polite` may not put into or take from `none`; `puts` or `takes` would grant it",
        "2: invalid: `../etc` is not the name of a queue: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter",
        "3: permission denied: `app:polite` may not serve `echo@1`; `fulfills` would grant it",
        "4: invalid: `a..b` is not a topic: at most 16 dotted segments of letters, digits, `-` and `_`, at most 256 bytes",
        "5: invalid: `app:polite` has no subscription 1",
        "6: permission denied: `app:polite` may not subscribe to `>`; `subscribes` would grant it",
        "7: invalid: `echo@1` has no operation `nothing` in `main`; it has `big`, `echo`, `never`, `sender`",
        "8: 262144 bytes",
        "9: payload of 262145 bytes is over the limit of 262144",
        "10: 10 bytes",
    ];
    // The order of a contract's operations is not fixed.
    let known = |text: &str| text.split("; it has").next().unwrap().to_owned();
    assert_eq!(answers.iter().map(|text| known(text)).collect::<Vec<_>>(), expected.map(known));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_at_random_after_the_hello_end_in_a_close_or_wait_for_more() {
    let stage = Stage::new(FILE).await;
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let mut raw = stage.raw("app:polite").await;
        let mut bytes = Vec::new();
        for _ in 0..random.usize(1..6) {
            let mut body: Vec<u8> = (0..random.usize(0..60)).map(|_| random.u8(..)).collect();
            body.insert(0, if random.bool() { random.u8(0x10..0x1d) } else { random.u8(..) });
            bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
            bytes.extend(body);
        }
        raw.send_bytes(&bytes).await;
        tokio::io::AsyncWriteExt::shutdown(&mut raw.stream).await.unwrap();
        while let Some(frame) = raw.next().await {
            FromMain::decode(&frame).unwrap();
        }
    }
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_sent_before_it_closed_the_connection_is_read_to_the_end() {
    let stage = Stage::new(FILE).await;
    let stream = stage.raw("app:polite").await.stream.into_std().unwrap();
    // As after the close of a program that leaves: Main cannot write to it any more.
    stream.shutdown(Shutdown::Read).unwrap();
    let mut frames = BytesMut::new();
    for id in 1..=500 {
        let (topic, payload) = ("news.of", Bytes::new());
        FromPeer::Publish { id, timeout_ms: 0, to: None, topic, payload }.encode(&mut frames);
    }
    (&stream).write_all(&frames).unwrap();
    drop(stream);
    stage.sessions_become(0).await;
    let peers = stage.main.peers().list();
    assert_eq!(peers.iter().map(|peer| peer.counts.sent).sum::<u64>(), 500);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_reads_no_more_is_gone_once_what_it_sent_is_read() {
    let stage = Stage::new(FILE).await;
    let stream = stage.raw("app:polite").await.stream.into_std().unwrap();
    stream.shutdown(Shutdown::Read).unwrap();
    let mut frame = BytesMut::new();
    call(1, "echo", "").encode(&mut frame);
    (&stream).write_all(&frame).unwrap();
    stage.sessions_become(0).await;
    stage.works().await;
    drop(stream);
}

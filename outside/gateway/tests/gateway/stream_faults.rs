//! Plain streams that do not behave.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::support::{Plain, Stage, becomes, connect, token_of};

const FILE: &str = "
[queue.jobs]
messages = 2
[queue.closed]
[queue.taken]

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>']
subscribes = ['news.>']
puts = ['jobs']
takes = ['taken']
limits.message-size = '2 KiB'
limits.sessions = 4

[peer.'app:stranger']
uid = 4294967294
";

fn opening(rest: &str) -> String {
    format!("app:polite {} {rest}", token_of("app:polite"))
}

async fn silent(stage: &Stage) -> Plain {
    Plain { io: connect(&stage.streams).await, input: bytes::BytesMut::new() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_line_that_says_something_else_is_refused_with_a_word() {
    let stage = Stage::new("", FILE).await;
    let other = token_of("app:other");
    for (line, word) in [
        (String::new(), "protocol"),
        ("GET / HTTP/1.1".to_owned(), "protocol"),
        (opening("send news.a lines"), "protocol"),
        (opening("publish news.a words"), "protocol"),
        (opening("publish news.a lines more"), "protocol"),
        ("\u{1b}[31m".to_owned(), "protocol"),
        ("x".repeat(1023), "protocol"),
        ("x".repeat(1024), "protocol"),
        ("x".repeat(100_000), "protocol"),
        (format!("{}{}", opening("publish news.a lines"), " ".repeat(1024)), "protocol"),
        (format!("app:polite {other} publish news.a lines"), "denied"),
        (format!("app:nobody {} publish news.a lines", token_of("app:polite")), "denied"),
        ("app:polite - publish news.a lines".to_owned(), "denied"),
        ("app:stranger - publish news.a lines".to_owned(), "denied"),
        ("gateway:events - subscribe > lines".to_owned(), "denied"),
        (opening("subscribe other.a lines"), "permission-denied"),
        (opening("subscribe news..a lines"), "invalid"),
        (opening("put closed lines"), "permission-denied"),
        (opening("put nowhere lines"), "permission-denied"),
        (opening("put taken lines"), "permission-denied"),
        (opening("publish other.a lines"), "permission-denied"),
        (opening("publish news..a lines"), "invalid"),
        (opening("publish news.* lines"), "invalid"),
        (opening(&format!("publish {} lines", "a".repeat(900))), "invalid"),
    ] {
        let mut plain = stage.stream(&line).await;
        let lines = plain.lines().await;
        let first = lines.first().cloned().unwrap_or_default();
        assert!(lines.len() == 1 && first.starts_with(&format!("error {word} ")), "{line:.80}: {lines:?}");
        assert!(!first.contains(&token_of("app:polite")), "{first}");
    }
    let mut bytes = silent(&stage).await;
    bytes.send(&[0xff, 0xfe, b'\n']).await;
    assert_eq!(bytes.lines().await, ["error protocol the first line is not UTF-8"]);
    // In two pieces, the second longer than what may come.
    let mut pieces = silent(&stage).await;
    pieces.send(opening("publish news.a lines").as_bytes()).await;
    sleep(Duration::from_millis(50)).await;
    pieces.send(format!("{}\n", " ".repeat(1000)).as_bytes()).await;
    pieces.end().await;
    assert!(pieces.lines().await[0].starts_with("error protocol"));
    let mut nothing = silent(&stage).await;
    nothing.end().await;
    assert!(nothing.lines().await.is_empty());
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_line_that_does_not_come_or_drips_is_waited_for_five_seconds() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, began) = (stage.app("app:polite").await, Instant::now());
    let (mut nothing, mut drips) = (silent(&stage).await, silent(&stage).await);
    let drip = async {
        for byte in "app:polite".bytes().cycle() {
            drips.send(&[byte]).await;
            if began.elapsed() > Duration::from_millis(5500) {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        drips.lines().await
    };
    let (lines, dripped) = tokio::join!(nothing.lines(), drip);
    assert_eq!(lines, ["error protocol no line came within 5 s"]);
    assert_eq!(dripped, ["error protocol no line came within 5 s"]);
    assert!(began.elapsed() > Duration::from_millis(4900) && began.elapsed() < Duration::from_secs(9));
    polite.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_without_a_line_gives_way_oldest_first() {
    let stage = Stage::new("", FILE).await;
    let mut crowd = Vec::new();
    for _ in 0..300 {
        crowd.push(silent(&stage).await);
    }
    let mut polite = stage.stream(&opening("publish news.a lines")).await;
    assert_eq!(polite.line().await.as_deref(), Some("ok"));
    assert!(crowd[0].lines().await[0].starts_with("error busy "));
    polite.end().await;
    assert_eq!(polite.lines().await, ["done 0"]);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_fails_ends_the_stream_with_its_number() {
    let stage = Stage::new("", FILE).await;
    let long = [&2049_u32.to_le_bytes()[..], &[0; 2049]].concat();
    for (rest, frames, expected) in [
        ("publish news.a lines", ["x".repeat(2049).as_bytes(), b"\n"].concat(), "error too-large frame 1: "),
        (
            "publish news.a lines",
            ["ok\nok\n".as_bytes(), &[b'x'; 9000]].concat(),
            "error too-large frame 3: ",
        ),
        ("publish news.a length", long, "error too-large frame 1: "),
        ("publish news.a length", vec![255; 4], "error too-large frame 1: "),
        ("publish news.a length", vec![0, 0, 0, 0, 1, 0], "error protocol frame 2: "),
        ("publish news.a length", vec![2, 0, 0, 0, 1], "error protocol frame 1: "),
        ("put jobs lines", b"1\n2\n3\n4\n".to_vec(), "error overloaded frame 3: "),
    ] {
        let mut plain = stage.stream(&opening(rest)).await;
        plain.send(&frames).await;
        plain.end().await;
        let lines = plain.lines().await;
        assert_eq!((lines.len(), lines[0].as_str()), (2, "ok"), "{rest} {lines:?}");
        assert!(lines[1].starts_with(expected), "{lines:?}");
    }
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_session_and_its_grant() {
    let stage = Stage::new("", FILE).await;
    let mut hears = stage.stream(&opening("subscribe news.a lines")).await;
    let mut says = stage.stream(&opening("publish news.a lines")).await;
    for plain in [&mut hears, &mut says] {
        assert_eq!(plain.line().await.as_deref(), Some("ok"));
    }
    let ids: Vec<_> = stage
        .main
        .peers()
        .list()
        .iter()
        .filter(|peer| peer.name.as_str() == "app:polite")
        .flat_map(|peer| peer.sessions.iter().map(|session| session.id))
        .collect();
    for id in ids {
        assert!(stage.main.peers().end(id));
    }
    assert!(says.lines().await[0].starts_with("error ended "));
    assert!(hears.lines().await.is_empty());

    let mut hears = stage.stream(&opening("subscribe news.a lines")).await;
    let mut says = stage.stream(&opening("publish news.a lines")).await;
    for plain in [&mut hears, &mut says] {
        assert_eq!(plain.line().await.as_deref(), Some("ok"));
    }
    stage.reload(&FILE.replace("subscribes = ['news.>']", "").replace("publishes = ['news.>']", "")).await;
    assert!(hears.lines().await.is_empty());
    says.send(b"1\n").await;
    assert!(says.lines().await[0].starts_with("error permission-denied frame 1: "));
    stage.reload(FILE).await;
    let mut says = stage.stream(&opening("publish news.a lines")).await;
    assert_eq!(says.line().await.as_deref(), Some("ok"));
    stage.reload(&FILE.replace("tokens = ['HASH']", "uid = 4294967293")).await;
    assert!(says.lines().await[0].starts_with("error revoked "));
    stage.sessions_become(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_drips_costs_no_more_than_its_bytes() {
    let stage = Stage::new("", &FILE.replace("'2 KiB'", "'1 MiB'\nlimits.inbox.bytes = '1 MiB'")).await;
    let mut polite = stage.app("app:polite").await;
    let mut drips = stage.stream(&opening("publish news.a lines")).await;
    drips.send(&vec![b'x'; 1 << 20].as_slice()[..(1 << 20) - 5000]).await;
    let began = Instant::now();
    for _ in 0..4000 {
        drips.send(b"x").await;
        // Each byte is read on its own.
        tokio::task::yield_now().await;
        if began.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    polite.is_served().await;
    drips.send(b"\n").await;
    drips.end().await;
    assert_eq!(drips.lines().await, ["ok", "done 1"]);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_sessions_are_refused_and_a_client_that_vanishes_leaves_none() {
    let stage = Stage::new("", FILE).await;
    let mut all = Vec::new();
    for verb in
        ["subscribe news.a lines", "publish news.a lines", "put jobs length", "subscribe news.b length"]
    {
        let mut plain = stage.stream(&opening(verb)).await;
        assert_eq!(plain.line().await.as_deref(), Some("ok"));
        all.push(plain);
    }
    let mut fifth = stage.stream(&opening("subscribe news.a lines")).await;
    assert!(fifth.lines().await[0].starts_with("error busy "));
    all[1].send(b"half a li").await;
    all[2].send(&[9, 0, 0]).await;
    drop(all);
    stage.sessions_become(0).await;
    becomes(|| stage.main.control().topics().subscriptions.is_empty(), || "subscriptions".to_owned()).await;
    stage.works().await;
}

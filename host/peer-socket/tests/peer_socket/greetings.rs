//! Programs that want in: the right ones, and those that say the wrong thing or nothing.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use weir_peer::frame::{FromMain, FromPeer, Hello};

use crate::support::{Raw, Stage, hello, token_of};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']

[peer.'app:ours']
uid = UID

[peer.'app:theirs']
uid = 4294967294

[peer.'app:few']
uid = UID
limits.sessions = 2
";

async fn stage() -> Stage {
    Stage::new(&FILE.replace("UID", &rustix::process::getuid().as_raw().to_string())).await
}

async fn refused(stage: &Stage, first: FromPeer<'_>) -> String {
    let mut raw = stage.silent().await;
    raw.send(&[first]).await;
    let (code, text) = raw.closed().await;
    format!("{code}: {text}")
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_right_name_with_the_right_proof_gets_in_and_a_stranger_learns_no_more() {
    let stage = stage().await;
    let token = token_of("app:polite");
    let token = token.as_str();
    let denied = "denied: no peer has this name and this proof";
    for at in 0..token.len() {
        let mut wrong = token.as_bytes().to_vec();
        *wrong.get_mut(at).unwrap() ^= 1;
        let wrong = String::from_utf8(wrong).unwrap();
        assert_eq!(refused(&stage, hello("app:polite", &wrong)).await, denied);
    }
    for (name, token) in [
        ("app:nobody", token),
        ("app:polite", ""),
        ("app:polite", &token[1..]),
        ("app:theirs", ""),
        ("app:theirs", token),
        ("app:ours", token),
        ("main", token),
        ("echo", ""),
        ("", ""),
        ("app:polite\0", token),
    ] {
        assert_eq!(refused(&stage, hello(name, token)).await, denied, "{name}");
    }
    let denied_of = |name: &str| {
        let list = stage.main.peers().list();
        list.iter().find(|peer| peer.name.as_str() == name).unwrap().denied
    };
    assert_eq!(
        (denied_of("app:polite"), denied_of("app:theirs"), denied_of("app:ours")),
        (token.len() as u64 + 2, 2, 1)
    );
    let mut ours = stage.silent().await;
    ours.send(&[hello("app:ours", "")]).await;
    assert!(ours.next().await.is_some());
    assert_eq!(stage.sessions(), 1);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_no_more_sessions_than_it_may() {
    let stage = stage().await;
    let mut within = Vec::new();
    for _ in 0..2 {
        let mut raw = stage.silent().await;
        raw.send(&[hello("app:few", "")]).await;
        assert!(raw.next().await.is_some());
        within.push(raw);
    }
    let text = "busy: `app:few` has 2 sessions, which is its limit `limits.sessions`";
    assert_eq!(refused(&stage, hello("app:few", "")).await, text);
    within.pop();
    stage.sessions_become(1).await;
    let mut raw = stage.silent().await;
    raw.send(&[hello("app:few", "")]).await;
    assert!(raw.next().await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_main_does_not_speak_is_named() {
    let stage = stage().await;
    let later = Hello { oldest: 4, newest: 9, requests: 0, events: 0, name: "app:ours", token: None };
    let text = "version: main speaks versions 1 to 3 of the protocol, and the peer 4 to 9";
    assert_eq!(refused(&stage, FromPeer::Hello(later)).await, text);
    for (oldest, newest, chosen) in [(0, 9, 3), (1, 1, 1), (0, 0, 0)] {
        let mut raw = stage.silent().await;
        raw.send(&[FromPeer::Hello(Hello { oldest, newest, ..later })]).await;
        let answer = raw.next().await.unwrap();
        match FromMain::decode(&answer).unwrap() {
            FromMain::Welcome { version, .. } => assert_eq!(version, chosen),
            FromMain::Close { code, .. } => assert_eq!((code, chosen), ("version", 0)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_give_way_to_later_ones_and_end_in_time() {
    let stage = stage().await;
    let began = Instant::now();
    let mut silent: Vec<Raw> = Vec::new();
    for number in 0..400 {
        let mut raw = stage.silent().await;
        if number % 2 == 0 {
            // Half a hello.
            raw.send_bytes(&[40, 0, 0, 0, 1, b'W']).await;
        }
        silent.push(raw);
    }
    stage.works().await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let mut closed = Vec::new();
    for raw in &mut silent {
        closed.push(raw.closed().await.0);
    }
    // The polite one took a place, too.
    assert_eq!(closed.iter().filter(|code| *code == "busy").count(), 145);
    assert!(closed.iter().skip(145).all(|code| code == "protocol"));
    assert!(began.elapsed() >= Duration::from_secs(5));
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_closed_halfway_leaves_nothing() {
    let stage = stage().await;
    for bytes in [&[][..], &[40, 0], &[40, 0, 0, 0, 1, b'W', b'E']] {
        let mut raw = stage.silent().await;
        raw.send_bytes(bytes).await;
        // Its side is closed, the other stays open.
        tokio::io::AsyncWriteExt::shutdown(&mut raw.stream).await.unwrap();
        assert_eq!(raw.next().await, None);
    }
    let raw = stage.raw("app:polite").await;
    assert_eq!(stage.sessions(), 1);
    drop(raw);
    stage.sessions_become(0).await;
    sleep(Duration::from_millis(10)).await;
    stage.works().await;
}

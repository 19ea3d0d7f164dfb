//! One program that floods Main beside one that does not.

use std::{
    future::ready,
    io::ErrorKind,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::net::UnixStream;
use weir_peer::{Options, Peer, frame::FromMain};
use weir_peer_socket::PeerSocket;

use crate::support::{Stage, call, token_of};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']

[peer.'app:greedy']
tokens = ['HASH']
wants = ['echo@1']
limits.message-rate = 500
";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_over_its_rate_is_read_later_and_others_are_served() {
    let stage = Stage::new(FILE).await;
    let answered = Arc::new(AtomicU32::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let mut raw = stage.raw("app:greedy").await;
    let (count, is_over) = (answered.clone(), over.clone());
    let (began, greedy) = (
        Instant::now(),
        tokio::spawn(async move {
            let mut id = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                let batch: Vec<_> = (0..60)
                    .map(|_| {
                        id += 1;
                        call(id, "echo", "")
                    })
                    .collect();
                raw.send(&batch).await;
                for _ in 0..60 {
                    let frame = raw.next().await.unwrap();
                    assert!(matches!(FromMain::decode(&frame), Ok(FromMain::Answer { .. })), "{frame:?}");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        }),
    );
    let polite = stage.connect("app:polite").await;
    let mut slowest = Duration::ZERO;
    while began.elapsed() < Duration::from_secs(3) {
        let sent = Instant::now();
        assert_eq!(polite.call("echo@1", "echo", "hello").await, Ok("hello".into()));
        slowest = slowest.max(sent.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    over.store(true, Ordering::Relaxed);
    // A second's worth at once, and 500 in each second; what was sent meanwhile is read later.
    let answered = answered.load(Ordering::Relaxed);
    let most = 500.0 * (began.elapsed().as_secs_f64() + 1.0) + 61.0;
    assert!(f64::from(answered) <= most && answered > 1000, "{answered} of {most}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    greedy.await.unwrap();
}

#[tokio::test]
async fn a_program_waits_while_too_many_are_to_be_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("peers.sock");
    let socket = PeerSocket::bind(&path).unwrap();
    let mut crowd = Vec::new();
    let refused = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => crowd.push(stream),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    let options = Options::new("app:polite".parse().unwrap()).token(token_of("app:polite"));
    let mut connecting = pin!(Peer::connect(&path, options));
    tokio::select! {
        biased;
        connected = &mut connecting => panic!("nobody accepts: {:?}", connected.err()),
        () = ready(()) => {}
    }
    let stage = Stage::at(socket, path.clone(), dir, FILE).await;
    connecting.await.unwrap().leave().await;
    stage.works().await;
}

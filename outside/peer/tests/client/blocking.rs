//! The client for programs without async code.

use std::{path::PathBuf, thread, time::Duration};

use tokio::sync::oneshot;
use weir_names::Error;
use weir_peer::{
    ConnectError, Ended,
    blocking::Peer,
    frame::{FromMain, FromPeer},
};

use crate::fake::{FakeMain, FakeSocket, options};

/// Runs `main` with a session's other side on a thread of its own.
fn with_main<F: Future<Output = ()>>(
    main: impl FnOnce(FakeMain) -> F + Send + 'static,
) -> (PathBuf, thread::JoinHandle<()>) {
    let (sender, receiver) = oneshot::channel();
    let thread = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let socket = FakeSocket::new();
            sender.send(socket.path.clone()).unwrap();
            main(socket.welcome().await).await;
        });
    });
    (receiver.blocking_recv().unwrap(), thread)
}

#[test]
fn a_program_without_async_code_does_the_same() {
    let (path, main) = with_main(|mut main| async move {
        let id = main.expect_id().await;
        main.answer(id, "7").await;
        main.accept_subscription(9).await;
        main.event(9, 1).await;
        let id = main.expect_id().await;
        main.answer(id, "").await;
        main.request(1, "read").await;
        main.expect_frame(FromPeer::Reply { request: 1, payload: "21.5".into() }).await;
        main.request(2, "read").await;
        main.expect_frame(FromPeer::Refuse { request: 2, error: Error::NoProvider("nobody".to_owned()) })
            .await;
        main.expect_frame(FromPeer::Counted { count: 4 }).await;
        let id = main.expect_id().await;
        main.answer(id, vec![0; 12]).await;
        main.expect_frame(FromPeer::Counted { count: 3 }).await;
        let id = main.expect_id().await;
        main.answer(id, "").await;
        let id = main.expect_id().await;
        main.answer(id, "").await;
        main.job(3, "uploads").await;
        main.expect_frame(FromPeer::Done { job: 3 }).await;
        main.expect_frame(FromPeer::Unsubscribe { id: 0, subscription: 9 }).await;
        assert_eq!(main.read().await, None);
    });
    let peer = Peer::connect(path, options()).unwrap();
    assert_eq!(peer.call("settings@1", "get", "volume").unwrap(), "7");
    let mut events = peer.subscribe("a.>").unwrap();
    assert_eq!(events.next().unwrap().sequence, 1);
    assert_eq!(events.next_within(Duration::from_millis(1)), Err(Error::Timeout));
    let mut requests = peer.serve("thermal@1", &["read"]).unwrap();
    requests.next().unwrap().answer(Ok("21.5"));
    let request = requests.next().unwrap();
    assert_eq!(request.id(), 99);
    request.refuse(Error::NoProvider("nobody".to_owned()));
    peer.publish_after(4, "a", "").unwrap();
    let queue = peer.queue("uploads").unwrap();
    queue.put_until_done_after(3, "").unwrap();
    let job = queue.take().unwrap();
    drop((queue, requests, peer));
    job.done();
    drop(events);
    main.join().unwrap();
}

#[test]
fn many_threads_share_a_session_until_main_ends_it() {
    let (path, main) = with_main(|mut main| async move {
        for _ in 0..4 {
            main.expect_id().await;
        }
        main.send(&FromMain::Close { code: "stopping", text: "Main ends" }).await;
    });
    let peer = Peer::connect(path, options()).unwrap();
    let calls = [(); 4].map(|()| {
        let peer = peer.clone();
        thread::spawn(move || peer.call("a@1", "b", ""))
    });
    for call in calls {
        assert_eq!(call.join().unwrap(), Err(Error::PeerGone));
    }
    assert!(matches!(peer.closed(), Ended::Closed { .. }));
    assert_eq!(
        peer.queue("uploads").unwrap().take_within(Duration::from_secs(1)).unwrap_err(),
        Error::PeerGone
    );
    main.join().unwrap();
}

#[test]
fn threads_that_call_at_once_get_their_own_answers() {
    let (path, main) = with_main(|mut main| async move {
        while let Some(frame) = main.read().await {
            if let FromPeer::Call { id, payload, .. } = FromPeer::decode(&frame).unwrap() {
                main.answer(id, payload).await;
            }
        }
    });
    let peer = Peer::connect(path, options()).unwrap();
    let threads = [0_u8, 1, 2, 3].map(|thread| {
        let peer = peer.clone();
        thread::spawn(move || {
            for number in 0..250_u8 {
                // From a few bytes to more than a read brings at once.
                let payload = vec![thread ^ number; 1 + usize::from(number) * 240];
                assert_eq!(peer.call("a@1", "b", payload.clone()).unwrap(), payload);
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    drop(peer);
    main.join().unwrap();
}

#[test]
fn a_socket_that_is_not_there_is_an_error() {
    let error = Peer::connect("/nonexistent/peers.sock", options()).unwrap_err();
    assert!(matches!(error, ConnectError::Io(_)), "{error}");
}

//! How sessions begin and end, and calls within them.

use std::time::Duration;

use weir_names::Error;
use weir_peer::{
    ConnectError, Ended, Peer,
    frame::{FromMain, FromPeer, Hello, VERSION, close},
};

use crate::fake::{FakeSocket, IN_FLIGHT, MESSAGE_SIZE, options, session};

#[tokio::test]
async fn the_hello_says_what_the_options_say() {
    let socket = FakeSocket::new();
    let options = options().token("secret").requests(3).events(5);
    assert!(!format!("{options:?}").contains("secret"));
    let main = async {
        let mut main = socket.accept().await;
        let (oldest, newest) = (1, VERSION);
        let hello = Hello { oldest, newest, requests: 3, events: 5, name: "app:test", token: Some("secret") };
        main.expect_frame(FromPeer::Hello(hello)).await;
        main.send(&FromMain::Close { code: close::DENIED, text: "no such token" }).await;
    };
    let (peer, ()) = tokio::join!(Peer::connect(&socket.path, options), main);
    let error = peer.unwrap_err();
    assert_eq!(error.to_string(), "refused with `denied`: no such token");
    assert!(matches!(error, ConnectError::Refused { code, .. } if code == close::DENIED));
}

#[tokio::test]
async fn a_socket_that_does_not_speak_the_protocol_is_refused() {
    let welcome =
        |version| FromMain::Welcome { version, session: 1, message_size: 1, in_flight: 1, subscriptions: 1 };
    let frame = |frame: FromMain<'_>| {
        let mut bytes = bytes::BytesMut::new();
        frame.encode(&mut bytes);
        bytes.to_vec()
    };
    let cases = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "does not speak the protocol: a frame of 1347703880"),
        (frame(welcome(4)), "Main chose version 4 of the protocol, and the client speaks 1 to 3"),
        (frame(FromMain::GivenUp { request: 1 }), "GIVEN_UP in place of a welcome"),
        (vec![], "the socket of Main cannot be used"),
    ];
    for (bytes, expected) in cases {
        let socket = FakeSocket::new();
        let main = async {
            let mut main = socket.accept().await;
            main.read().await;
            main.send_bytes(&bytes).await;
        };
        let (peer, ()) = tokio::join!(Peer::connect(&socket.path, options()), main);
        let error = peer.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_main_that_says_nothing_is_not_waited_for_without_end() {
    let socket = FakeSocket::new();
    let peer = Peer::connect(&socket.path, options()).await;
    assert!(matches!(peer.unwrap_err(), ConnectError::Timeout));
}

#[tokio::test]
async fn a_call_is_answered_by_value_or_by_every_error() {
    let (peer, mut main) = session(options()).await;
    let errors = [
        Error::PermissionDenied("no grant".into()),
        Error::UnknownContract("settings@1".into()),
        Error::NoProvider("settings".into()),
        Error::NotReady("settings".into()),
        Error::Timeout,
        Error::Overloaded("settings".into()),
        Error::PeerGone,
        Error::Trapped,
        Error::LimitExceeded { name: "in-flight".into(), used: 5, allowed: 4 },
        Error::WouldDeadlock(vec!["app:test".into(), "a".into(), "app:test".into()]),
        Error::TooLarge { bytes: 9, allowed: 8 },
        Error::Invalid("unknown operation".into()),
        Error::handler("not-found", "no key"),
    ];
    let (asked, answered) = (errors.clone(), errors);
    let program = async {
        assert_eq!(peer.call("settings@1", "get", "volume").await.unwrap(), "7");
        for error in asked {
            let timeout = Duration::from_millis(250);
            let call = peer.operation("settings@1", "get").provider("settings").timeout(timeout);
            assert_eq!(call.send("volume").await.unwrap_err(), error);
        }
    };
    let main = async {
        main.expect_frame(FromPeer::Call {
            id: 1,
            timeout_ms: 0,
            contract: "settings@1",
            operation: "get",
            provider: None,
            payload: "volume".into(),
        })
        .await;
        main.answer(1, "7").await;
        for error in answered {
            let id = main
                .expect(|frame| match frame {
                    FromPeer::Call { id, timeout_ms: 250, provider: Some("settings"), .. } => id,
                    other => panic!("{other:?}"),
                })
                .await;
            main.send(&FromMain::Error { id, error }).await;
        }
    };
    tokio::join!(program, main);
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    let (peer, mut main) = session(options()).await;
    let program = async { tokio::join!(peer.call("a@1", "one", ""), peer.call("a@1", "two", "")) };
    let main = async {
        let (one, two) = (main.expect_id().await, main.expect_id().await);
        main.answer(two, "2").await;
        main.answer(one, "1").await;
    };
    let ((one, two), ()) = tokio::join!(program, main);
    assert_eq!((one.unwrap(), two.unwrap()), ("1".into(), "2".into()));
}

#[tokio::test]
async fn a_dropped_call_is_given_up_and_a_late_answer_ignored() {
    let (peer, mut main) = session(options()).await;
    let id = tokio::select! {
        _ = peer.call("a@1", "slow", "") => panic!("nothing answered"),
        id = main.expect_id() => id,
    };
    main.expect_frame(FromPeer::Cancel { id }).await;
    main.answer(id, "late").await;
    let main = async {
        let id = main.expect_id().await;
        main.answer(id, "in time").await;
    };
    let (answer, ()) = tokio::join!(peer.call("a@1", "next", ""), main);
    assert_eq!(answer.unwrap(), "in time");
}

#[tokio::test]
async fn a_close_in_the_middle_of_a_call_ends_all_waits_and_says_why() {
    let (peer, mut main) = session(options()).await;
    let queue = peer.queue("uploads").unwrap();
    let program = async { tokio::join!(peer.call("a@1", "b", ""), queue.take(), peer.closed()) };
    let main = async {
        main.expect_id().await;
        main.expect_id().await;
        main.send(&FromMain::Close { code: close::STOPPING, text: "Main ends" }).await;
    };
    let ((answer, job, ended), ()) = tokio::join!(program, main);
    assert_eq!(answer, Err(Error::PeerGone));
    assert_eq!(job.unwrap_err(), Error::PeerGone);
    assert_eq!(ended, Ended::Closed { code: "stopping".into(), text: "Main ends".into() });
    assert_eq!(ended.to_string(), "Main closed the session: `stopping`: Main ends");
    assert_eq!(peer.call("a@1", "b", "").await, Err(Error::PeerGone));
    assert_eq!(queue.take().await.unwrap_err(), Error::PeerGone);
    assert_eq!(peer.subscribe("a.>").await.unwrap_err(), Error::PeerGone);
}

#[tokio::test]
async fn a_connection_that_breaks_ends_all_waits() {
    let (peer, mut main) = session(options()).await;
    let main = async {
        main.expect_id().await;
        drop(main);
    };
    let (answer, ()) = tokio::join!(peer.call("a@1", "b", ""), main);
    assert_eq!(answer, Err(Error::PeerGone));
    assert!(matches!(peer.closed().await, Ended::Broken(_)));
}

#[tokio::test]
async fn what_was_sent_before_the_program_leaves_is_written() {
    let (peer, mut main) = session(options()).await;
    peer.announce("a.b", "last words").await.unwrap();
    let other = peer.clone();
    assert_eq!(peer.leave().await, Ended::Left);
    assert_eq!(other.call("a@1", "b", "").await, Err(Error::PeerGone));
    main.expect(|frame| assert!(matches!(frame, FromPeer::Publish { id: 0, topic: "a.b", .. }))).await;
    assert_eq!(main.read().await, None);
}

#[tokio::test]
async fn a_session_ends_with_its_last_value() {
    let (peer, mut main) = session(options()).await;
    let (queue, clone) = (peer.queue("uploads").unwrap(), peer.clone());
    drop(peer);
    clone.announce("a.b", "still here").await.unwrap();
    main.expect(|frame| assert!(matches!(frame, FromPeer::Publish { .. }))).await;
    drop((clone, queue));
    assert_eq!(main.read().await, None);
}

#[tokio::test]
async fn what_main_would_refuse_is_not_sent() {
    let (peer, mut main) = session(options()).await;
    let large = vec![0; usize::try_from(MESSAGE_SIZE).unwrap() + 1];
    let size = u64::from(MESSAGE_SIZE);
    let error = peer.call("a@1", "b", large).await.unwrap_err();
    assert_eq!(error, Error::TooLarge { bytes: size + 1, allowed: size });
    for error in [
        peer.call("settings", "get", "").await.unwrap_err(),
        peer.call("settings@1", "a/b", "").await.unwrap_err(),
        peer.publish("a.>", "").await.unwrap_err(),
        peer.subscribe("a..b").await.unwrap_err(),
        peer.queue("A").unwrap_err(),
        peer.publish_to("", "a", "").await.unwrap_err(),
    ] {
        assert_eq!(error.case(), "invalid", "{error}");
    }
    peer.announce("a", "").await.unwrap();
    main.expect(|frame| assert!(matches!(frame, FromPeer::Publish { topic: "a", .. }))).await;
}

#[tokio::test]
async fn no_more_calls_than_allowed_are_under_way() {
    let (peer, mut main) = session(options()).await;
    let calls: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let peer = peer.clone();
            tokio::spawn(async move { peer.call("a@1", "b", "").await })
        })
        .collect();
    let mut ids = Vec::new();
    for _ in &calls {
        ids.push(main.expect_id().await);
    }
    let error = peer.call("a@1", "b", "").await.unwrap_err();
    assert_eq!(error, Error::LimitExceeded { name: "in-flight".into(), used: 5, allowed: 4 });
    for (id, call) in ids.into_iter().zip(calls) {
        main.answer(id, "").await;
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_sender_waits_while_main_does_not_read() {
    let (peer, mut main) = session(options()).await;
    let sender = tokio::spawn(async move {
        for number in 0..100_u8 {
            peer.announce("a.b", vec![number; 60_000]).await.unwrap();
        }
        peer.leave().await
    });
    // Enough turns for the sender to send all that it can.
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert!(!sender.is_finished());
    for number in 0..100 {
        main.expect(|frame| match frame {
            FromPeer::Publish { payload, .. } => assert_eq!(payload, vec![number; 60_000]),
            other => panic!("{other:?}"),
        })
        .await;
    }
    assert_eq!(main.read().await, None);
    assert_eq!(sender.await.unwrap(), Ended::Left);
}

#[tokio::test]
async fn hostile_frames_end_the_session() {
    let long = (1_u32 << 30).to_le_bytes();
    let cases: [(&[u8], &str); 8] = [
        (&long, "a frame of 1073741824 bytes, where at most 66560 are allowed"),
        (&[0, 0, 0, 0], "an empty frame"),
        (&[1, 0, 0, 0, 0x10], "a frame of the unknown kind 0x10"),
        (&[3, 0, 0, 0, 0x90, 1, 0], "ANSWER: `id` is cut short"),
        (&[5, 0, 0, 0, 0xa1, 0, 0, 0, 0], "GIVEN_UP: `request` is 0"),
        (
            &[23, 0, 0, 0, 0x81, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            "a second WELCOME",
        ),
        (
            &[21, 0, 0, 0, 0xa3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'a', 0],
            "more jobs than the credit",
        ),
        (
            &[
                32, 0, 0, 0, 0xa2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,
                b'a', 0, 0, 0, 0, 0, 0,
            ],
            "more events than the credit",
        ),
    ];
    for (bytes, expected) in cases {
        let (peer, mut main) = session(options().events(0)).await;
        let main = async {
            main.expect_id().await;
            main.send_bytes(bytes).await;
            main.read().await
        };
        let (answer, end) = tokio::join!(peer.call("a@1", "b", ""), main);
        assert_eq!((answer, end), (Err(Error::PeerGone), None));
        assert_eq!(peer.closed().await, Ended::Protocol(expected.to_owned()));
    }
}

//! What a session says of spans, and to which Main.

use weir_peer::{
    Error, Peer, TraceContext,
    frame::{FromMain, FromPeer},
};

use crate::fake::{FakeMain, FakeSocket, options, session};

const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn span() -> TraceContext {
    SPAN.parse().unwrap()
}

/// The next frame, which must be a call, is answered.
async fn answer(main: &mut FakeMain) {
    let id = main.expect_id().await;
    main.send(&FromMain::Answer { id, payload: "".into() }).await;
}

#[tokio::test]
async fn only_what_is_sent_as_part_of_a_span_says_so() {
    let (peer, mut main) = session(options()).await;
    let part = peer.part_of(Some(span()));
    let work = async {
        part.call("c@1", "o", "").await.unwrap();
        part.announce("a.b", "").await.unwrap();
        // A request of the session itself.
        let _requests = part.serve("c@1", &["o"]).await.unwrap();
        peer.call("c@1", "o", "").await.unwrap();
        part.part_of(None).call("c@1", "o", "").await.unwrap();
    };
    let script = async {
        main.expect_frame(FromPeer::Trace { span: span() }).await;
        answer(&mut main).await;
        main.expect_frame(FromPeer::Trace { span: span() }).await;
        main.expect(|frame| assert!(matches!(frame, FromPeer::Publish { .. }), "{frame:?}")).await;
        for _ in 0..3 {
            answer(&mut main).await;
        }
    };
    tokio::join!(work, script);
}

#[tokio::test]
async fn a_request_has_the_span_that_came_just_before_it() {
    let (peer, mut main) = session(options()).await;
    let (requests, ()) = tokio::join!(peer.serve("c@1", &["o"]), answer(&mut main));
    let mut requests = requests.unwrap();
    for (number, trace) in [(1, Some(span())), (2, None)] {
        if let Some(span) = trace {
            main.send(&FromMain::Trace { span }).await;
        }
        main.send(&FromMain::Request {
            request: number,
            remaining_ms: 5000,
            message: 1,
            sender: "main",
            contract: "c@1",
            operation: "o",
            payload: "".into(),
        })
        .await;
        assert_eq!(requests.next().await.unwrap().trace(), trace);
    }
}

#[tokio::test]
async fn a_main_of_version_1_is_told_no_spans_and_takes_no_descriptions() {
    let socket = FakeSocket::new();
    let welcome = async {
        let mut main = socket.accept().await;
        main.welcome_as(1).await;
        main
    };
    let (peer, mut main) = tokio::join!(Peer::connect(&socket.path, options()), welcome);
    let peer = peer.unwrap();
    assert_eq!(peer.version(), 1);
    let described = peer.describe("{}").await;
    assert_eq!(described, Err(Error::Invalid("this Main takes no descriptions".to_owned())));
    let part = peer.part_of(Some(span()));
    let (called, ()) = tokio::join!(part.call("c@1", "o", ""), answer(&mut main));
    assert_eq!(called, Ok("".into()));
}

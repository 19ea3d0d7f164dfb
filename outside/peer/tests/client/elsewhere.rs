//! What a bridge passes on: counts from elsewhere, and errors as Main's own.

use weir_names::{Error, HandlerError};
use weir_peer::{Peer, frame::FromPeer};

use crate::fake::{FakeSocket, options};

#[tokio::test]
async fn counts_and_errors_from_elsewhere_are_told_to_a_main_that_knows_them() {
    for version in [2, 3] {
        let socket = FakeSocket::new();
        let main = async {
            let mut main = socket.accept().await;
            main.welcome_as(version).await;
            for count in [4, 2] {
                if version == 3 {
                    main.expect_frame(FromPeer::Counted { count }).await;
                }
                let id = main.expect_id().await;
                main.answer(id, vec![0; 12]).await;
            }
            // Nothing counted is nothing said.
            for _put_and_serve in 0..2 {
                let id = main.expect_id().await;
                main.answer(id, "").await;
            }
            main.request(1, "read").await;
            let error = Error::NoProvider("nobody".to_owned());
            main.expect_frame(match version {
                2 => FromPeer::Fail { request: 1, error: HandlerError::new(error.case(), error.to_string()) },
                _ => FromPeer::Refuse { request: 1, error },
            })
            .await;
            assert_eq!(main.read().await, None);
        };
        let bridge = async {
            let peer = Peer::connect(&socket.path, options()).await.unwrap();
            peer.publish_after(4, "a", "").await.unwrap();
            let queue = peer.queue("q").unwrap();
            queue.put_until_done_after(2, "job").await.unwrap();
            queue.put_until_done("job").await.unwrap();
            let mut requests = peer.serve("thermal@1", &["read"]).await.unwrap();
            requests.next().await.unwrap().refuse(Error::NoProvider("nobody".to_owned())).await;
        };
        tokio::join!(main, bridge);
    }
}

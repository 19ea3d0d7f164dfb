//! A Main that says what a test tells it to.

use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};
use weir_peer::{
    Options, Peer,
    frame::{FromMain, FromPeer, VERSION, frame_max, next_frame},
};

/// The largest payload.
pub(crate) const MESSAGE_SIZE: u32 = 64 * 1024;
/// Calls and the like at once.
pub(crate) const IN_FLIGHT: u32 = 4;

pub(crate) struct FakeSocket {
    pub(crate) path: PathBuf,
    listener: UnixListener,
    _dir: TempDir,
}

pub(crate) struct FakeMain {
    stream: UnixStream,
    buffer: BytesMut,
}

pub(crate) fn options() -> Options {
    Options::new("app:test".parse().unwrap())
}

/// A session, from both sides.
pub(crate) async fn session(options: Options) -> (Peer, FakeMain) {
    let socket = FakeSocket::new();
    let (peer, main) = tokio::join!(Peer::connect(&socket.path, options), socket.welcome());
    (peer.unwrap(), main)
}

impl FakeSocket {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peers.sock");
        Self { listener: UnixListener::bind(&path).unwrap(), path, _dir: dir }
    }

    /// A connection, before its hello is read.
    pub(crate) async fn accept(&self) -> FakeMain {
        let (stream, _) = self.listener.accept().await.unwrap();
        FakeMain { stream, buffer: BytesMut::new() }
    }

    pub(crate) async fn welcome(&self) -> FakeMain {
        let mut main = self.accept().await;
        main.welcome().await;
        main
    }
}

impl FakeMain {
    pub(crate) async fn welcome(&mut self) {
        self.welcome_as(VERSION).await;
    }

    /// The welcome of a Main that speaks this version.
    pub(crate) async fn welcome_as(&mut self, version: u16) {
        self.expect(|frame| assert!(matches!(frame, FromPeer::Hello(_)), "{frame:?}")).await;
        self.send(&FromMain::Welcome {
            version,
            session: 7,
            message_size: MESSAGE_SIZE,
            in_flight: IN_FLIGHT,
            subscriptions: 64,
        })
        .await;
    }

    /// The next frame; `None` at the end of the connection.
    pub(crate) async fn read(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = next_frame(&mut self.buffer, frame_max(MESSAGE_SIZE)).unwrap() {
                return Some(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                assert!(self.buffer.is_empty(), "the last frame is cut short");
                return None;
            }
        }
    }

    /// The next frame, with which `check` does what it wants.
    pub(crate) async fn expect<R>(&mut self, check: impl FnOnce(FromPeer<'_>) -> R) -> R {
        let frame = self.read().await.expect("the connection has ended");
        check(FromPeer::decode(&frame).unwrap())
    }

    /// The next frame is exactly this one.
    pub(crate) async fn expect_frame(&mut self, expected: FromPeer<'_>) {
        self.expect(|frame| assert_eq!(frame, expected)).await;
    }

    /// The id of the next frame, which must be one with an id.
    pub(crate) async fn expect_id(&mut self) -> u32 {
        self.expect(|frame| match frame {
            FromPeer::Call { id, .. }
            | FromPeer::Publish { id, .. }
            | FromPeer::Subscribe { id, .. }
            | FromPeer::Put { id, .. }
            | FromPeer::Take { id, .. }
            | FromPeer::Serve { id, .. } => id,
            other => panic!("{other:?}"),
        })
        .await
    }

    pub(crate) async fn send(&mut self, frame: &FromMain<'_>) {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes);
        self.send_bytes(&bytes).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, id: u32, payload: impl Into<Bytes>) {
        self.send(&FromMain::Answer { id, payload: payload.into() }).await;
    }

    /// Answers a SUBSCRIBE.
    pub(crate) async fn accept_subscription(&mut self, subscription: u32) {
        let id = self.expect_id().await;
        self.answer(id, subscription.to_le_bytes().to_vec()).await;
    }

    pub(crate) async fn event(&mut self, subscription: u32, sequence: u64) {
        self.send(&FromMain::Event {
            subscription,
            sequence,
            lost: 0,
            retained: false,
            sender: "main",
            topic: "a.b",
            payload: "x".into(),
        })
        .await;
    }

    pub(crate) async fn request(&mut self, request: u32, operation: &str) {
        self.send(&FromMain::Request {
            request,
            remaining_ms: 5000,
            message: 99,
            sender: "telemetry",
            contract: "thermal@1",
            operation,
            payload: "in".into(),
        })
        .await;
    }

    pub(crate) async fn job(&mut self, job: u32, queue: &str) {
        self.send(&FromMain::Job {
            job,
            message: 50 + u64::from(job),
            deliveries: 1,
            sender: "telemetry",
            queue,
            payload: "work".into(),
        })
        .await;
    }
}

//! A Main with a peer socket, and programs that speak to it frame by frame.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::{sleep, timeout},
};
use weir_host::{Config, HandlerError, Main, Service, config::TokenHash};
use weir_peer::{
    Options, Peer,
    frame::{FromMain, FromPeer, Hello, frame_max, next_frame},
};
use weir_peer_socket::PeerSocket;

/// The token of this name.
pub(crate) fn token_of(name: &str) -> String {
    format!("weir_0123456789abcdef_{name}")
}

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Stage {
    pub(crate) main: Main,
    pub(crate) path: PathBuf,
    dir: TempDir,
}

impl Stage {
    /// A Main that serves `echo@1`: `echo` answers what it got, `big` answers 100,000 bytes, `never` does not answer.
    /// `more` is added to the file, in which `HASH` stands for the hash of the peer's [token](token_of).
    pub(crate) async fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peers.sock");
        let socket = PeerSocket::bind(&path).unwrap();
        Self::at(socket, path, dir, more).await
    }

    /// As [`new`](Self::new), at a socket that is bound.
    pub(crate) async fn at(socket: PeerSocket, path: PathBuf, dir: TempDir, more: &str) -> Self {
        let config = config(more, dir.path());
        let echo = Service::new("echo@1".parse().unwrap())
            .on("echo".parse().unwrap(), async |request| Ok(request.payload))
            .on("sender".parse().unwrap(), async |request| Ok(request.sender.into()))
            .on("big".parse().unwrap(), async |_| Ok(vec![b'x'; 100_000].into()))
            .on("never".parse().unwrap(), async |_| {
                std::future::pending::<Result<Bytes, HandlerError>>().await
            });
        let main = Main::builder(config).serve(echo).attach(|attached| socket.serve(attached));
        Self { main: main.start().await.unwrap(), path, dir }
    }

    /// As [`new`](Self::new), for a Main that runs.
    pub(crate) async fn reload(&self, more: &str) {
        self.main.control().reload_with(config(more, self.dir.path())).await.unwrap();
    }

    /// A program that behaves.
    pub(crate) async fn connect(&self, name: &str) -> Peer {
        Peer::connect(&self.path, Options::new(name.parse().unwrap()).token(token_of(name))).await.unwrap()
    }

    /// A program that speaks frame by frame, after its hello.
    pub(crate) async fn raw(&self, name: &str) -> Raw {
        let mut raw = self.silent().await;
        raw.send(&[hello(name, &token_of(name))]).await;
        let welcome = raw.next().await.unwrap();
        assert!(matches!(FromMain::decode(&welcome), Ok(FromMain::Welcome { .. })), "{welcome:?}");
        raw
    }

    /// A connection without a hello.
    pub(crate) async fn silent(&self) -> Raw {
        loop {
            match UnixStream::connect(&self.path).await {
                Ok(stream) => return Raw { stream, input: BytesMut::new() },
                // As many as may wait to be accepted do.
                Err(error) if error.kind() == ErrorKind::WouldBlock => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn sessions(&self) -> usize {
        self.main.peers().list().iter().map(|peer| peer.sessions.len()).sum()
    }

    /// Waits until so many sessions are left.
    pub(crate) async fn sessions_become(&self, sessions: usize) {
        let began = Instant::now();
        while self.sessions() != sessions {
            assert!(began.elapsed() < PATIENCE, "{} sessions", self.sessions());
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// A program that behaves is served, and nothing is left of the others.
    pub(crate) async fn works(&self) {
        let polite = self.connect("app:polite").await;
        assert_eq!(polite.call("echo@1", "echo", "hello").await, Ok("hello".into()));
        polite.leave().await;
        assert_eq!(self.main.client().waiters(), 0);
    }
}

fn config(more: &str, dir: &Path) -> Config {
    let mut text = "main.serves = ['echo@1']\n".to_owned();
    let mut name = "";
    for line in more.lines() {
        name = line.strip_prefix("[peer.'").and_then(|rest| rest.strip_suffix("']")).unwrap_or(name);
        text.push_str(&line.replace("HASH", &TokenHash::of(&token_of(name)).to_string()));
        text.push('\n');
    }
    weir_host::parse(&text, "weir.toml", dir).unwrap()
}

pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    pub(crate) input: BytesMut,
}

impl Raw {
    pub(crate) async fn send(&mut self, frames: &[FromPeer<'_>]) {
        let mut output = BytesMut::new();
        frames.iter().for_each(|frame| frame.encode(&mut output));
        self.send_bytes(&output).await;
    }

    /// Main may have closed the connection.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let _closed = self.stream.write_all(bytes).await;
    }

    /// The next frame. None: the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = next_frame(&mut self.input, frame_max(64 << 20)).unwrap() {
                return Some(frame);
            }
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.input)).await.unwrap();
            if matches!(read, Ok(0) | Err(_)) {
                return None;
            }
        }
    }

    /// Why Main ends the session, after other frames. The connection ends with it.
    pub(crate) async fn closed(&mut self) -> (String, String) {
        let mut last = None;
        while let Some(frame) = self.next().await {
            last = Some(frame);
        }
        match FromMain::decode(&last.unwrap()) {
            Ok(FromMain::Close { code, text }) => (code.to_owned(), text.to_owned()),
            other => panic!("the last frame is {other:?}"),
        }
    }
}

pub(crate) fn hello<'a>(name: &'a str, token: &'a str) -> FromPeer<'a> {
    let token = (!token.is_empty()).then_some(token);
    FromPeer::Hello(Hello { oldest: 1, newest: 1, requests: 8, events: 0, name, token })
}

pub(crate) fn call(id: u32, operation: &'static str, payload: impl Into<Bytes>) -> FromPeer<'static> {
    let payload = payload.into();
    FromPeer::Call { id, timeout_ms: 0, contract: "echo@1", operation, provider: None, payload }
}

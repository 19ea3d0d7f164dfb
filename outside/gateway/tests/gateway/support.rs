//! A Main with a gateway, and what speaks to it below JSON-RPC: HTTP byte by byte, and plain streams.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::UnixStream,
    time::{sleep, timeout},
};
use weir_gateway::{Gateway, GatewayConfig};
use weir_host::{Config, HandlerError, Main, Service, config::TokenHash};

use crate::app::App;

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The token of this name.
pub(crate) fn token_of(name: &str) -> String {
    format!("weir_0123456789abcdef_{name}")
}

/// A port that nothing listens on. It is below those that the system gives to connections, so that none takes it first.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 10_000).unwrap();
    let ports = std::iter::repeat_with(|| 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000);
    let mut free = ports.take(1000).filter(|port| std::net::TcpListener::bind(("0.0.0.0", *port)).is_ok());
    free.next().unwrap()
}

pub(crate) struct Stage {
    pub(crate) main: Main,
    pub(crate) path: PathBuf,
    pub(crate) streams: PathBuf,
    gateway: String,
    pub(crate) dir: TempDir,
}

impl Stage {
    /// A Main that serves `echo@1`: see [`echo`]. `more` is added to the file, in which `HASH` stands for the hash of the
    /// peer's [token](token_of), and `gateway` to its table `[gateway]`.
    pub(crate) async fn new(gateway: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::in_dir(dir, gateway, more).await
    }

    pub(crate) async fn in_dir(dir: TempDir, gateway: &str, more: &str) -> Self {
        let config = config(gateway, more, dir.path());
        let bound = Gateway::bind(config.section::<GatewayConfig>().unwrap()).unwrap().unwrap();
        let main = Main::builder(config).serve(echo()).attach(|attached| bound.serve(attached));
        let (path, streams) = (dir.path().join("gateway.sock"), dir.path().join("streams.sock"));
        Self { main: main.start().await.unwrap(), path, streams, gateway: gateway.to_owned(), dir }
    }

    /// As [`new`](Self::new), for a Main that runs.
    pub(crate) async fn reload(&self, more: &str) {
        let config = config(&self.gateway, more, self.dir.path());
        self.main.control().reload_with(config).await.unwrap();
    }

    /// An app that behaves.
    pub(crate) async fn app(&self, name: &str) -> App {
        App::open(self.connect().await, name, &[bearer(name)]).await.unwrap()
    }

    pub(crate) async fn connect(&self) -> UnixStream {
        connect(&self.path).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn http(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Response {
        let mut stream = self.connect().await;
        stream.write_all(request(method, path, headers, body).as_bytes()).await.unwrap();
        Response::read(&mut stream).await.unwrap()
    }

    /// JSON-RPC by POST.
    pub(crate) async fn post(&self, name: &str, body: &str) -> Response {
        let headers = [bearer(name), ("Content-Type", "application/json".to_owned())];
        self.http("POST", &format!("/v1/peers/{name}/rpc"), &headers, body).await
    }

    /// A ticket for a page of this origin.
    pub(crate) async fn ticket(&self, name: &str, origin: &str) -> String {
        let headers = [bearer(name), ("Content-Type", "application/json".to_owned())];
        let body = json!({ "origin": origin }).to_string();
        let made = self.http("POST", &format!("/v1/peers/{name}/tickets"), &headers, &body).await;
        assert_eq!((made.status, made.json()["expires-in-s"].clone()), (201, json!(30)), "{made:?}");
        made.json()["ticket"].as_str().unwrap().to_owned()
    }

    /// A plain stream with its first line.
    pub(crate) async fn stream(&self, line: &str) -> Plain {
        let mut plain = Plain { io: connect(&self.streams).await, input: BytesMut::new() };
        plain.send(format!("{line}\n").as_bytes()).await;
        plain
    }

    pub(crate) fn sessions(&self) -> usize {
        let list = self.main.peers().list();
        let of_apps = list.iter().filter(|peer| peer.name.as_str() != "gateway:events");
        of_apps.map(|peer| peer.sessions.len()).sum()
    }

    /// Waits until so many sessions are left.
    pub(crate) async fn sessions_become(&self, sessions: usize) {
        becomes(|| self.sessions() == sessions, || format!("{} sessions", self.sessions())).await;
    }

    /// An app that behaves is served, and nothing is left of the others.
    pub(crate) async fn works(&self) {
        let mut polite = self.app("app:polite").await;
        polite.is_served().await;
        polite.leave().await;
        becomes(|| self.main.client().waiters() == 0, || format!("{} waiters", self.main.client().waiters()))
            .await;
    }
}

/// `echo` answers its payload, `sender` the sender's name, `big` 100,000 bytes that are no JSON, `bytes` three of them,
/// `empty` nothing, `refuse` an error of its own, and `never` does not answer.
fn echo() -> Service {
    Service::new("echo@1".parse().unwrap())
        .on("echo".parse().unwrap(), async |request| Ok(request.payload))
        .on("sender".parse().unwrap(), async |request| Ok(json!(request.sender).to_string().into()))
        .on("big".parse().unwrap(), async |_| Ok(vec![b'x'; 100_000].into()))
        .on("bytes".parse().unwrap(), async |_| Ok(Bytes::from_static(&[0, 255, 1])))
        .on("empty".parse().unwrap(), async |_| Ok(Bytes::new()))
        .on("refuse".parse().unwrap(), async |_| Err::<Bytes, _>(HandlerError::new("no", "not today")))
        .on("never".parse().unwrap(), async |_| std::future::pending::<Result<Bytes, HandlerError>>().await)
}

fn config(gateway: &str, more: &str, dir: &Path) -> Config {
    // Keys of Main stand before all tables.
    let main: String = more
        .lines()
        .filter_map(|line| line.strip_prefix("# main "))
        .map(|key| format!("main.{key}\n"))
        .collect();
    let mut text = format!(
        "main.serves = ['echo@1']\n{main}[gateway]\nlisten = ['unix:gateway.sock'LISTEN]\n\
         streams.listen = ['unix:streams.sock'STREAMS]\n{gateway}\n"
    );
    // A list is in one place: further addresses come as lines of their own.
    let further = |key: &str| -> String {
        gateway.lines().filter_map(|line| line.strip_prefix(key)).map(|more| format!(", '{more}'")).collect()
    };
    text = text.replace("LISTEN", &further("# listen ")).replace("STREAMS", &further("# streams "));
    let mut name = "";
    for line in more.lines() {
        name = line.strip_prefix("[peer.'").and_then(|rest| rest.strip_suffix("']")).unwrap_or(name);
        text.push_str(&line.replace("HASH", &TokenHash::of(&token_of(name)).to_string()));
        text.push('\n');
    }
    weir_host::loader().section::<GatewayConfig>().parse(&text, "weir.toml", dir).unwrap()
}

/// Connects once there is room in the backlog.
pub(crate) async fn connect(path: &Path) -> UnixStream {
    let began = Instant::now();
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return stream,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until it is so.
pub(crate) async fn becomes(mut is: impl FnMut() -> bool, what: impl Fn() -> String) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{}", what());
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for this no longer than anything here takes.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap()
}

pub(crate) fn bearer(name: &str) -> (&'static str, String) {
    ("Authorization", format!("Bearer {}", token_of(name)))
}

/// What an app sends to open a WebSocket, but for its proof.
pub(crate) fn upgrade() -> Vec<(&'static str, String)> {
    [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec()
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, String)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str("Host: localhost\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text + "\r\n" + body
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// None: the connection ended before one was whole.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<Self> {
        let mut input = BytesMut::new();
        loop {
            if let Some(response) = Self::whole(&input) {
                return Some(response);
            }
            if matches!(soon(stream.read_buf(&mut input)).await, Ok(0) | Err(_)) {
                return None;
            }
        }
    }

    fn whole(input: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(input);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let head = head.to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (body.len() >= length).then(|| Self { status, head: head.clone(), body: body[..length].to_owned() })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Its status, and the code of its error.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// A client of a plain stream.
pub(crate) struct Plain {
    pub(crate) io: UnixStream,
    pub(crate) input: BytesMut,
}

impl Plain {
    /// The gateway may have ended it.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ended = self.io.write_all(bytes).await;
    }

    /// The next line, without its end. None: the stream has ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.input.iter().position(|byte| *byte == b'\n') {
                let line = self.input.split_to(at + 1);
                return Some(String::from_utf8(line[..at].to_vec()).unwrap());
            }
            if matches!(soon(self.io.read_buf(&mut self.input)).await, Ok(0) | Err(_)) {
                return None;
            }
        }
    }

    /// All lines until the end.
    pub(crate) async fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.line().await {
            lines.push(line);
        }
        lines
    }

    /// Nothing more is sent.
    pub(crate) async fn end(&mut self) {
        let _ended = self.io.shutdown().await;
    }
}

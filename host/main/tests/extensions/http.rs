//! Requests by HTTP, as granted, limited, and gone with their extension.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use weir_host::{
    CallOptions, Error, ExtensionConfig, Main,
    config::{HttpGrant, Limits, RestartPolicy},
    control::ExtensionState,
    hooks::{HookCall, HookDirConfig, HookOutcome},
    http::HttpConfig,
    limits::ExtensionLimits,
};

use super::support::{PATIENCE, config, extension, puppet, reached, start, tell, until};

/// Answers on loopback, until it is dropped.
struct Server {
    address: SocketAddr,
    /// Connections that are open.
    open: Arc<AtomicUsize>,
    /// Heads of requests that came.
    requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (opened, requested) = (open.clone(), requests.clone());
        let task = tokio::spawn(async move {
            let mut served = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::Relaxed);
                let (opened, requested) = (opened.clone(), requested.clone());
                served.spawn(async move {
                    serve(stream, &requested).await;
                    opened.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self { address, open, requests, task }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn grant(&self, path: &str) -> HttpGrant {
        HttpGrant::new(self.url(path).parse().unwrap())
    }
}

/// `/slow` is never answered, `/endless` never ends; all else is `hello`.
async fn serve(mut stream: TcpStream, requests: &AtomicUsize) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        requests.fetch_add(1, Ordering::Relaxed);
        let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let sent = match path {
            b"/slow" => stream.read_u8().await.map(drop),
            b"/endless" => {
                let _sent =
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n").await;
                while stream.write_all(&[b'x'; 1 << 14]).await.is_ok() {}
                return;
            }
            _ => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await,
        };
        if sent.is_err() {
            return;
        }
    }
}

fn fetcher(grants: &[HttpGrant]) -> ExtensionConfig {
    let mut fetcher = extension("fetcher", "fetcher");
    fetcher.fulfills = vec!["fetcher@1".parse().unwrap()];
    fetcher.grants.http = grants.to_vec();
    fetcher
}

async fn report(main: &Main) -> ExtensionLimits {
    main.control().limits_of("fetcher").await.unwrap().extensions.pop().unwrap()
}

/// The use of a limit, now and at most.
async fn used(main: &Main, key: &str) -> (u64, u64) {
    let report = serde_json::to_value(report(main).await).unwrap();
    let limits = report.get("limits").unwrap().as_array().unwrap();
    let limit = limits.iter().find(|limit| limit.get("key").is_some_and(|name| name == key)).unwrap();
    let number = |name| limit.get(name).unwrap().as_u64().unwrap();
    (number("used"), number("peak"))
}

#[tokio::test]
async fn headers_are_an_error_however_long_one_is_and_a_named_limit_when_they_add_up() {
    let server = Server::new().await;
    let main = start(vec![fetcher(&[server.grant("/")])]).await;
    let header = |bytes: usize| tell_of(&main, format!("header {} {bytes}", server.url("/")));
    assert_eq!(header(1000).await.unwrap(), "200 hello");
    assert!(header(40_000).await.unwrap_err().contains("HttpRequestHeaderSectionSize"));
    // One more than a call carries.
    let told = header((1 << 20) + (64 << 10) + 1).await.unwrap_err();
    assert!(told.starts_with("wasi rejected header `x-long"), "{told}");
    assert_eq!(main.control().status("fetcher").unwrap().failures, []);
    assert_eq!(header(70_000).await, Err("Trapped".to_owned()));
    reached(&main, "fetcher", ExtensionState::Failed).await;
    let failures = main.control().status("fetcher").unwrap().failures;
    let limit = failures[0].limit.as_ref().unwrap();
    assert_eq!((limit.name.as_str(), limit.allowed), ("http.header-size", 32768));
    // With the name, other headers, and what each takes beside its text.
    assert!((70_000..71_000).contains(&limit.used), "{}", limit.used);
    let asked = format!("asked for {} of `http.header-size`, but 32768 are allowed", limit.used);
    assert_eq!(failures[0].cause, format!("trapped: {asked}"));
}

async fn tell_of(main: &Main, command: String) -> Result<String, String> {
    tell(main, "fetcher", &command).await
}

#[tokio::test]
async fn an_extension_fetches_what_is_granted_and_is_told_of_all_else() {
    let server = Server::new().await;
    let main = start(vec![fetcher(&[server.grant("/in")])]).await;
    for _ in 0..3 {
        assert_eq!(
            tell(&main, "fetcher", &format!("get {}", server.url("/in/x"))).await.unwrap(),
            "200 hello"
        );
    }
    assert_eq!(used(&main, "http.in-flight").await, (0, 1));
    for (command, said) in [
        (format!("get {}", server.url("/out")), "HttpRequestDenied"),
        (format!("get {}", server.url("/in/../out")), "HttpRequestDenied"),
        (format!("post {} 10", server.url("/in")), "HttpRequestDenied"),
        ("get http://169.254.169.254/".to_owned(), "HttpRequestDenied"),
        ("get http://localhost/".to_owned(), "HttpRequestDenied"),
        (format!("get http://user@{}/in", server.address), "HttpRequestUriInvalid"),
        (format!("with host other.example {}", server.url("/in")), "HeaderError::Forbidden"),
        (format!("with transfer-encoding chunked {}", server.url("/in")), "HeaderError::Forbidden"),
        (format!("with connection upgrade {}", server.url("/in")), "HeaderError::Forbidden"),
        (format!("with content-length 5 {}", server.url("/in")), "HttpRequestBodySize"),
    ] {
        let refused = tell(&main, "fetcher", &command).await.unwrap_err();
        assert!(refused.contains(said), "{command}: {refused}");
    }
    assert_eq!(tell(&main, "fetcher", &format!("get {}", server.url("/in"))).await.unwrap(), "200 hello");
    assert_eq!(report(&main).await.http_refused, Some(6));
    let lines = main.control().logs();
    let said = lines.iter().filter(|line| line.message.contains("an HTTP request was refused"));
    assert_eq!(said.count(), 3, "at the first, the second and the fourth");
    main.shutdown().await.unwrap();
    timeout(PATIENCE, until(|| server.open() == 0)).await.unwrap();
}

#[tokio::test]
async fn an_extension_without_a_grant_sends_nothing() {
    let server = Server::new().await;
    let main = start(vec![fetcher(&[])]).await;
    let refused = tell(&main, "fetcher", &format!("get {}", server.url("/"))).await.unwrap_err();
    assert!(refused.contains("HttpRequestDenied"), "{refused}");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_request_ends_with_the_one_that_it_is_sent_for() {
    let server = Server::new().await;
    let main = start(vec![fetcher(&[server.grant("/")])]).await;
    let options = CallOptions::default().timeout(Duration::from_millis(300));
    let slow = format!("get {}", server.url("/slow"));
    let late = main.client().call_with("fetcher@1", "run", slow, options).await.unwrap_err();
    // Both end at the same time: the guest may still answer with the end of its own request.
    let is_first = matches!(late, Error::Timeout) || format!("{late:?}").contains("ConnectionReadTimeout");
    assert!(is_first, "{late:?}");
    timeout(PATIENCE, until(|| server.requests() == 1 && server.open() == 0)).await.unwrap();
    assert_eq!(tell(&main, "fetcher", &format!("get {}", server.url("/"))).await.unwrap(), "200 hello");
}

#[tokio::test]
async fn answers_that_are_held_open_count_until_they_are_dropped() {
    let server = Server::new().await;
    let mut fetcher = fetcher(&[server.grant("/")]);
    fetcher.limits.http_in_flight = 4;
    let main = start(vec![fetcher]).await;
    let hold = format!("hold {} 1000", server.url("/endless"));
    assert_eq!(tell(&main, "fetcher", &hold).await.unwrap(), "4");
    assert_eq!(used(&main, "http.in-flight").await, (4, 4));
    tell(&main, "fetcher", "drop").await.unwrap();
    timeout(PATIENCE, until(|| server.open() == 0)).await.unwrap();
    assert_eq!(tell(&main, "fetcher", &format!("get {}", server.url("/"))).await.unwrap(), "200 hello");
    assert_eq!(used(&main, "http.in-flight").await, (0, 4));
}

#[tokio::test]
async fn what_is_under_way_ends_with_its_extension() {
    let server = Server::new().await;
    let mut fetcher = fetcher(&[server.grant("/")]);
    fetcher.limits.stop_timeout = Duration::from_millis(100);
    let main = start(vec![fetcher]).await;
    let size = format!("size {}", server.url("/endless"));
    let (stopped, _) = tokio::join!(
        async {
            timeout(PATIENCE, until(|| server.open() == 1)).await.unwrap();
            main.control().stop("fetcher").await
        },
        tell(&main, "fetcher", &size)
    );
    stopped.unwrap();
    timeout(PATIENCE, until(|| server.open() == 0)).await.unwrap();
    assert_eq!(used(&main, "http.in-flight").await.0, 0);
}

#[tokio::test]
async fn thousands_of_requests_leave_nothing_behind() {
    let server = Server::new().await;
    let mut fetcher = fetcher(&[server.grant("/")]);
    (fetcher.limits.http_in_flight, fetcher.limits.http_rate) = (50, 100_000);
    let main = start(vec![fetcher]).await;
    for _ in 0..60 {
        let many = format!("many {} 50", server.url("/"));
        assert_eq!(tell(&main, "fetcher", &many).await.unwrap(), "50");
    }
    assert_eq!(server.requests(), 3000);
    assert!(server.open() <= 50, "{}", server.open());
    main.control().stop("fetcher").await.unwrap();
    timeout(PATIENCE, until(|| server.open() == 0)).await.unwrap();
}

/// A program of WASI alone, unaware of Weir.
#[tokio::test]
async fn an_ordinary_program_runs_to_its_end_as_an_extension() {
    let server = Server::new().await;
    let mut fetch = extension("fetch", "fetch");
    fetch.grants.http = vec![server.grant("/")];
    fetch.grants.env = BTreeMap::from([("URL".to_owned(), server.url("/"))]);
    fetch.restart.policy = RestartPolicy::Never;
    let main = start(vec![fetch]).await;
    assert_eq!(reached(&main, "fetch", ExtensionState::Stopped).await, None);
    assert!(main.control().logs().iter().any(|line| line.message == "hello"));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn an_ordinary_program_runs_to_its_end_as_a_hook() {
    let (server, main) = (Server::new().await, start(Vec::new()).await);
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(test_guests::path("fetch"), dir.path().join("10-fetch.wasm")).unwrap();
    for (grants, is_fetched) in [(vec![server.grant("/")], true), (Vec::new(), false)] {
        let mut config = HookDirConfig::new(dir.path());
        (config.timeout, config.total_timeout) = (PATIENCE, PATIENCE);
        config.grants.http = grants;
        config.grants.env = BTreeMap::from([("URL".to_owned(), server.url("/"))]);
        let hooks = main.hooks().open(config).unwrap();
        let async_run = hooks.run(HookCall::new()).await.unwrap();
        // The server is on this thread.
        let (report, on_thread) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || report.send(hooks.run_blocking(HookCall::new()).unwrap()));
        for report in [async_run, on_thread.await.unwrap()] {
            let run = &report.runs[0];
            assert_eq!(
                matches!(run.outcome, HookOutcome::Ok),
                is_fetched,
                "{:?} {:?}",
                run.outcome,
                run.stderr
            );
            assert_eq!(run.stdout == "hello", is_fetched, "{:?}", run.stdout);
        }
    }
    timeout(PATIENCE, until(|| server.open() == 0)).await.unwrap();
}

/// What `cargo xtask test --full http` hands over: a real server, and a program of others' making.
fn of_the_group(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("`{name}` is not set: run `cargo xtask test --full http`"))
}

/// The most memory that this process has had, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

async fn with_server(url: &str, change: impl FnOnce(&mut ExtensionConfig)) -> Main {
    let mut fetcher = fetcher(&[HttpGrant::new(url.parse().unwrap())]);
    fetcher.limits = Limits::max();
    (fetcher.limits.ready_timeout, fetcher.limits.http_bytes_in) = (PATIENCE, 16 << 30);
    (fetcher.limits.http_rate, fetcher.limits.fuel_per_message) = (100_000, 1_000_000_000_000);
    change(&mut fetcher);
    let mut neighbour = puppet("neighbour");
    neighbour.limits.cpu_share = "100%".parse().unwrap();
    let mut config = config(vec![fetcher, neighbour]);
    config.set_section({
        let mut http = HttpConfig::default();
        http.ca_file = Some(of_the_group("WEIR_HTTP_CA").into());
        http
    });
    Main::builder(config).start().await.unwrap()
}

#[tokio::test]
#[ignore = "needs a server: `cargo xtask test --full http`"]
async fn full_a_real_server_is_fetched_from_over_tls_and_a_gigabyte_takes_no_memory() {
    let url = of_the_group("WEIR_HTTP_SERVER");
    let main = with_server(&url, |_| ()).await;
    let get = |path: &str| format!("get {url}{path}");
    for _ in 0..3 {
        assert_eq!(tell(&main, "fetcher", &get("/hello")).await.unwrap(), "200 hello\n");
    }
    assert!(tell(&main, "fetcher", &get("/missing")).await.unwrap().starts_with("404 "));
    assert!(tell(&main, "fetcher", &get("/redirect")).await.unwrap().starts_with("302 "));
    let wrong_name = url.replace("127.0.0.1", "127.0.0.2");
    let refused = tell(&main, "fetcher", &format!("get {wrong_name}/hello")).await.unwrap_err();
    assert!(refused.contains("HttpRequestDenied"), "{refused}");
    // Compressed by the server, it comes in chunks.
    assert_eq!(tell(&main, "fetcher", &format!("size {url}/chunked")).await.unwrap(), "6");

    let before = most_memory();
    let began = Instant::now();
    assert_eq!(tell(&main, "fetcher", &format!("size {url}/gigabyte")).await.unwrap(), "1073741824");
    let (took, grown) = (began.elapsed(), most_memory() - before);
    println!("1 GiB over TLS in {took:?}; the most memory grew by {} KiB", grown >> 10);
    assert!(grown < 16 << 20, "{grown} bytes");
    main.shutdown().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a server: `cargo xtask test --full http`"]
async fn full_a_hundred_requests_in_flight_delay_no_neighbour() {
    const CALLS: usize = 2000;
    let url = of_the_group("WEIR_HTTP_SERVER");
    let main = with_server(&url, |_| ()).await;
    let p99 = async || {
        let mut took = Vec::new();
        for _ in 0..CALLS {
            let began = Instant::now();
            tell(&main, "neighbour", "echo x").await.unwrap();
            took.push(began.elapsed());
        }
        took.sort_unstable();
        took[CALLS * 99 / 100]
    };
    let alone = p99().await;
    let busy = async {
        let mut came = 0;
        for _ in 0..u32::MAX {
            came += tell(&main, "fetcher", &format!("many {url}/slow 100"))
                .await
                .unwrap()
                .parse::<u32>()
                .unwrap();
            if came >= 300 {
                return;
            }
        }
    };
    let mut beside = Duration::ZERO;
    let measured = async {
        timeout(PATIENCE, async {
            while used(&main, "http.in-flight").await.0 < 100 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        beside = p99().await;
    };
    tokio::join!(busy, measured);
    println!("p99 of a neighbour: {alone:?} alone, {beside:?} beside 100 requests in flight");
    assert!(beside < alone * 2 + Duration::from_millis(1), "{alone:?} {beside:?}");
}

#[tokio::test]
#[ignore = "needs a server: `cargo xtask test --full http`"]
async fn full_an_unmodified_program_of_others_fetches_as_a_hook() {
    let url = of_the_group("WEIR_HTTP_SERVER");
    for (name, arguments) in
        [("WEIR_HTTP_RUST", vec![format!("{url}/hello")]), ("WEIR_HTTP_PYTHON", vec![format!("{url}/hello")])]
    {
        let main = with_server(&url, |_| ()).await;
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(of_the_group(name), dir.path().join("10-fetch.wasm")).unwrap();
        let mut config = HookDirConfig::new(dir.path());
        config.limits = Limits::max();
        (config.limits.file_size, config.limits.code_size) = (1 << 30, 4 << 30);
        (config.limits.compile_timeout, config.limits.compile_memory) = (PATIENCE * 3, 16 << 30);
        (config.timeout, config.total_timeout) = (PATIENCE * 3, PATIENCE * 3);
        config.grants.http = vec![HttpGrant::new(url.parse().unwrap())];
        let hooks = main.hooks().open(config).unwrap();
        let call = arguments.into_iter().fold(HookCall::new(), HookCall::arg);
        let report = hooks.run(call).await.unwrap();
        let run = &report.runs[0];
        assert!(matches!(run.outcome, HookOutcome::Ok), "{name}: {:?} {:?}", run.outcome, run.stderr);
        assert_eq!(run.stdout, "hello\n", "{name}");
    }
}

//! Half an hour of everything: what Main takes stays what it was.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};
use weir_peer::blocking::{Peer, Requests};

use super::{
    peers::{connect, own_uid},
    support::{Running, with_own_component},
};

/// Before the tables of programs outside, which have this user.
const CONFIG: &str = r#"
[main]
data-dir = "data"
peer-socket = "peers.sock"

[gateway]
listen = ["unix:gateway.sock"]

[store.kept]
bytes = "256 KiB"

[hooks.checks]
dir = "hooks.d"

[queue.jobs]
messages = 100
when-full = "drop-oldest"

[topic."told.state"]
retain = true

[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
publishes = ["told.>"]
reload = "overlap"

[[extension]]
id = "worker"
path = "worker.wasm"
takes = ["jobs"]
publishes = ["worked.>"]
config = { queue = "jobs", mode = "one-by-one" }

[[extension]]
id = "faulty"
path = "puppet.wasm"
fulfills = ["faulty@1"]
config.contract = "faulty@1"
limits.memory = "4 MiB"

[[extension]]
id = "storage"
path = "storage.wasm"
fulfills = ["local.storage@1"]
grants.stores = ["kept"]
config.store = "kept"
"#;

/// Without the variable `WEIR_SOAK_SECONDS`.
const SECONDS: u64 = 30 * 60;

/// What Main takes at one moment.
#[derive(Clone, Debug)]
struct Sample {
    at: Duration,
    /// KiB of memory that is there.
    resident: u64,
    threads: u64,
    files: BTreeSet<String>,
}

#[test]
#[ignore = "takes half an hour: `cargo xtask test --full soak`"]
fn after_a_while_main_takes_no_more_memory_threads_or_files() {
    let seconds = std::env::var("WEIR_SOAK_SECONDS").map_or(SECONDS, |seconds| seconds.parse().unwrap());
    let length = Duration::from_secs(seconds);
    let dir = with_own_component(&config(INBOX));
    for component in ["worker", "storage"] {
        fs::copy(test_guests::path(component), dir.path().join(component).with_extension("wasm")).unwrap();
    }
    fs::create_dir(dir.path().join("hooks.d")).unwrap();
    fs::copy(test_guests::path("hook"), dir.path().join("hooks.d/10-hook.wasm")).unwrap();
    let mut main = Running::start(dir);
    // These two stay all the time.
    let mut programs = Programs::connect(&main);
    let began = Instant::now();
    let (mut samples, mut operations) = (Vec::new(), 0_u64);
    let mut rounds = 0_u64;
    while began.elapsed() < length {
        rounds += 1;
        operations += round(&main, rounds) + programs.round(&main, rounds);
        samples.push(sample(&main, began.elapsed()));
    }
    let third = |number: u32| {
        let (from, to) = (length / 3 * number, length / 3 * (number + 1));
        samples.iter().filter(move |sample| (from..to).contains(&sample.at))
    };
    let resident =
        |number| third(number).map(|it| it.resident).sum::<u64>() as f64 / third(number).count() as f64;
    let threads = |number| third(number).map(|it| it.threads).max().unwrap();
    let files = |number| third(number).map(|it| it.files.len()).max().unwrap();
    let (before, after) = (resident(1), resident(2));
    println!("{rounds} rounds, {operations} operations in {seconds} s");
    println!("resident: {:.0} KiB, then {before:.0} KiB, then {after:.0} KiB", resident(0));
    println!("threads: {:?}, files: {:?}", [0, 1, 2].map(threads), [0, 1, 2].map(files));
    assert!((after - before).abs() <= before * 0.02, "{before} KiB, then {after} KiB");
    // A sample may meet a restart, which takes one more for a moment: both thirds before have met some.
    assert!(threads(2) <= threads(0).max(threads(1)), "{:?}", third(2).max_by_key(|it| it.threads));
    assert!(files(2) <= files(0).max(files(1)), "{:?}", third(2).max_by_key(|it| it.files.len()));
    main.weir(&["shutdown"]).good();
    assert_eq!(main.wait().0.code(), Some(0));
}

const INBOX: u64 = 100;

fn config(inbox: u64) -> String {
    let uid = own_uid();
    format!(
        "{CONFIG}limits.inbox.messages = {inbox}\n\
         [peer.'app:page']\nuid = {uid}\nwants = ['puppet@1', 'thermal@1']\nsubscribes = ['told.>']\n\
         [peer.'sidecar:thermal']\nuid = {uid}\nfulfills = ['thermal@1']\nputs = ['jobs']\nsubscribes = ['told.>']\n"
    )
}

/// An app and a sidecar that stay, and those that come and go.
struct Programs {
    page: Page,
    sidecar: Peer,
    requests: Requests,
}

impl Programs {
    fn connect(main: &Running) -> Self {
        let sidecar = connect(main, "sidecar:thermal", None).unwrap();
        let requests = sidecar.serve("thermal@1", &["read"]).unwrap();
        Self { page: Page::open(main), sidecar, requests }
    }

    /// Calls both ways, events, hooks, stores, and programs that leave rightly or without a word.
    fn round(&mut self, main: &Running, number: u64) -> u64 {
        self.page.call("events.subscribe", &json!({ "pattern": "told.state" }));
        for count in 0..100 {
            // "echo work", and the answer.
            let echo = self.page.call("puppet@1/run", &json!({ "$base64": "ZWNobyB3b3Jr" }));
            assert_eq!(echo["result"]["$base64"], "d29yaw==", "{echo}");
            let call = self.page.begin("thermal@1/read", &json!({}));
            self.requests.next().unwrap().answer(Ok("41"));
            assert_eq!(self.page.answer(call)["result"], 41);
            self.sidecar.queue("jobs").unwrap().put("echo work").unwrap();
            let entry = json!({ "key": format!("key-{}", count % 10), "value": number });
            assert_eq!(ask(main, "call/local.storage@1/set", entry.to_string().as_bytes()).0, 200);
        }
        self.page.call("events.unsubscribe", &json!({ "pattern": "told.state" }));
        for task in ["echo", "fail", "trap"] {
            let run = json!({ "hooks": "checks", "params": { "DO": task } });
            assert_eq!(ask(main, "call/hooks@1/run", run.to_string().as_bytes()).0, 200);
        }
        for rightly in [true, false] {
            let mut page = Page::open(main);
            page.call("events.subscribe", &json!({ "pattern": "told.>" }));
            let peer = connect(main, "app:page", None).unwrap();
            drop(peer.subscribe("told.>").unwrap());
            if rightly {
                page.socket.close(None).unwrap();
                while page.socket.read().is_ok() {}
                peer.leave();
            }
        }
        4 * 100 + 9
    }
}

/// A WebSocket of the app.
struct Page {
    socket: WebSocket<UnixStream>,
    last: u64,
}

impl Page {
    fn open(main: &Running) -> Self {
        let stream = UnixStream::connect(main.path().join("gateway.sock")).unwrap();
        let (socket, _) = tungstenite::client("ws://localhost/v1/peers/app:page/rpc", stream).unwrap();
        Self { socket, last: 0 }
    }

    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.socket.send(Message::text(request.to_string())).unwrap();
        self.last
    }

    /// Passes over events.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// A result or an error.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }
}

/// Calls, events, jobs, clients that stall, a trap, and restarts and reloads of right and wrong files.
fn round(main: &Running, number: u64) -> u64 {
    // They send half of a payload, and go when the round has ended.
    let stalled: Vec<_> = (0..8).map(|_| stalled(main)).collect();
    for count in 0..200 {
        assert_eq!(ask(main, "call/puppet@1/run", format!("echo {count}").as_bytes()).0, 200);
        ask(main, "publish/told.state", &[b'x'; 500]);
        assert_eq!(ask(main, "queues/jobs/jobs", b"echo work").0, 200);
    }
    // More than are started again by themselves within a minute: it is quarantined now and then.
    ask(main, "call/faulty@1/run", b"trap");
    assert_eq!(ask(main, "extensions/puppet/restart", b"").0, 200);
    assert_eq!(ask(main, "extensions/puppet/reload", b"").0, 200);
    ask(main, "extensions/faulty/restart", b"");
    let file = main.path().join("weir.toml");
    if number.is_multiple_of(4) {
        fs::write(&file, "[[extension]]\nid = 3\n").unwrap();
        assert_eq!(ask(main, "reload", b"").0, 422);
        fs::write(&file, config(INBOX + number % 8)).unwrap();
        assert_eq!(ask(main, "reload", b"").0, 200);
    }
    drop(stalled);
    600 + 5
}

fn stalled(main: &Running) -> UnixStream {
    let mut stream = UnixStream::connect(main.socket()).unwrap();
    let head = "POST /v1/call/puppet@1/run HTTP/1.1\r\nhost: weir\r\ncontent-length: 60000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[b'x'; 30_000]).unwrap();
    stream
}

/// The status and the body of an answer.
fn ask(main: &Running, route: &str, payload: &[u8]) -> (u16, String) {
    let mut stream = UnixStream::connect(main.socket()).unwrap();
    let length = payload.len();
    let head = format!(
        "POST /v1/{route} HTTP/1.1\r\nhost: weir\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), payload].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

fn sample(main: &Running, at: Duration) -> Sample {
    let proc = std::path::PathBuf::from(format!("/proc/{}", main.pid()));
    let status = fs::read_to_string(proc.join("status")).unwrap();
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let files = fs::read_dir(proc.join("fd")).unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        // It may be closed meanwhile.
        let target = fs::read_link(entry.path()).ok()?;
        Some(format!("{} {}", entry.file_name().display(), target.display()))
    });
    Sample { at, resident: value("VmRSS:"), threads: value("Threads:"), files: files.collect() }
}

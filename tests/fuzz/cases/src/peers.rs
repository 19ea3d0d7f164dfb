//! Input to the peer socket of a running Main.

use std::{
    cell::RefCell,
    fs,
    io::{Read, Write},
    net::Shutdown,
    os::unix::{fs::MetadataExt, net::UnixStream},
    time::{Duration, Instant},
};

use arbitrary::{Arbitrary, Unstructured};
use bytes::{Bytes, BytesMut};
use weir_host::{CallOptions, HandlerError, Main};
use weir_peer::frame::{FromMain, FromPeer, Hello, VERSION, frame_max, next_frame};
use weir_peer_socket::PeerSocket;

use crate::{
    scratch,
    stage::{PATIENCE, Stage, echo_component},
};

const MOST_STEPS: usize = 48;

const FILE: &str = r#"
main.peer-socket = "peers.sock"

[limits.small]
inherits = "min"
memory = "1 MiB"
cpu-share = "100%"

[[extension]]
id = "echo"
path = "echo.wasm"
class = "small"
fulfills = ["echo@1"]

[queue.jobs]
messages = 8
bytes = "64 KiB"
when-full = "drop-oldest"

[queue.kept]
messages = 8
when-full = "block"
store = "store@1"

[peer."app:fuzz"]
uid = UID
fulfills = ["theirs@1", "store@1"]
wants = ["echo@1", "theirs@1"]
publishes = ["a.>"]
subscribes = [{ topic = "a.*", messages = 4 }]
puts = ["jobs", "kept"]
takes = ["jobs", "kept"]
limits.message-size = "4 KiB"
limits.inbox.bytes = "16 KiB"
limits.in-flight = 8
limits.subscriptions = 4
limits.message-rate = 1_000_000
limits.request-timeout = "1s"
"#;

/// A name that means something here, or any other.
#[derive(Debug, Arbitrary)]
enum Name<'a> {
    Echo,
    Theirs,
    Store,
    Jobs,
    Kept,
    Topic,
    Pattern,
    Fuzz,
    Any(&'a str),
}

impl Name<'_> {
    fn text(&self) -> &str {
        let text = match self {
            Self::Echo => "echo@1",
            Self::Theirs => "theirs@1",
            Self::Store => "store@1",
            Self::Jobs => "jobs",
            Self::Kept => "kept",
            Self::Topic => "a.b",
            Self::Pattern => "a.*",
            Self::Fuzz => "app:fuzz",
            Self::Any(text) => text,
        };
        &text[..text.floor_char_boundary(255)]
    }
}

#[derive(Debug, Arbitrary)]
enum Frame<'a> {
    Call {
        id: u8,
        timeout: u8,
        contract: Name<'a>,
        operation: Name<'a>,
        provider: Option<Name<'a>>,
        payload: &'a [u8],
    },
    Cancel {
        id: u8,
    },
    Publish {
        id: u8,
        to: Option<Name<'a>>,
        topic: Name<'a>,
        payload: &'a [u8],
    },
    Subscribe {
        id: u8,
        pattern: Name<'a>,
    },
    Unsubscribe {
        id: u8,
        subscription: u32,
    },
    Put {
        id: u8,
        until_done: bool,
        queue: Name<'a>,
        payload: &'a [u8],
    },
    Take {
        id: u8,
        jobs: u32,
        queue: Name<'a>,
    },
    Done {
        job: u8,
    },
    Return {
        job: u8,
    },
    Serve {
        id: u8,
        contract: Name<'a>,
        operations: [Name<'a>; 2],
    },
    Reply {
        request: u8,
        payload: &'a [u8],
    },
    Fail {
        request: u8,
        code: &'a str,
    },
    Credit {
        events: u32,
    },
}

impl Frame<'_> {
    fn encode(&self, output: &mut BytesMut) {
        let bytes = Bytes::copy_from_slice;
        let frame = match self {
            Self::Call { id, timeout, contract, operation, provider, payload } => FromPeer::Call {
                id: (*id).into(),
                timeout_ms: (*timeout).into(),
                contract: contract.text(),
                operation: operation.text(),
                provider: provider.as_ref().map(Name::text).filter(|name| !name.is_empty()),
                payload: bytes(payload),
            },
            Self::Cancel { id } => FromPeer::Cancel { id: (*id).into() },
            Self::Publish { id, to, topic, payload } => FromPeer::Publish {
                id: (*id).into(),
                timeout_ms: 1,
                to: to.as_ref().map(Name::text).filter(|name| !name.is_empty()),
                topic: topic.text(),
                payload: bytes(payload),
            },
            Self::Subscribe { id, pattern } => {
                FromPeer::Subscribe { id: (*id).into(), pattern: pattern.text() }
            }
            Self::Unsubscribe { id, subscription } => {
                FromPeer::Unsubscribe { id: (*id).into(), subscription: *subscription }
            }
            Self::Put { id, until_done, queue, payload } => FromPeer::Put {
                id: (*id).into(),
                timeout_ms: 1,
                until_done: *until_done,
                queue: queue.text(),
                payload: bytes(payload),
            },
            Self::Take { id, jobs, queue } => {
                FromPeer::Take { id: (*id).into(), jobs: *jobs, queue: queue.text() }
            }
            Self::Done { job } => FromPeer::Done { job: (*job).into() },
            Self::Return { job } => FromPeer::Return { job: (*job).into() },
            Self::Serve { id, contract, operations } => FromPeer::Serve {
                id: (*id).into(),
                contract: contract.text(),
                operations: operations.iter().map(Name::text).collect(),
            },
            Self::Reply { request, payload } => {
                FromPeer::Reply { request: (*request).into(), payload: bytes(payload) }
            }
            Self::Fail { request, code } => {
                FromPeer::Fail { request: (*request).into(), error: HandlerError::new(*code, *code) }
            }
            Self::Credit { events } => FromPeer::Credit { events: *events },
        };
        frame.encode(output);
    }
}

#[derive(Debug, Arbitrary)]
enum Step<'a> {
    Send(Frame<'a>),
    SendBytes(&'a [u8]),
    /// Main calls what the program may serve.
    Ask(&'a [u8]),
    /// Main publishes.
    Tell(&'a [u8]),
    /// Main puts a job.
    Put(bool, &'a [u8]),
    /// What is there is read.
    Read,
}

thread_local! {
    static STAGE: RefCell<Option<Stage>> = const { RefCell::new(None) };
}

/// Speaks to the peer socket: bytes if the input starts with `R`, else a hello and steps as `arbitrary` reads them.
///
/// What Main says is frames. Afterwards its neighbour serves, and nothing is left of the session.
pub fn peers(data: &[u8]) {
    let mut first = BytesMut::new();
    let steps: Vec<Step<'_>> = match data.split_first() {
        Some((b'R', bytes)) => vec![Step::SendBytes(bytes)],
        _ => {
            let hello =
                Hello { oldest: 0, newest: VERSION, requests: 2, events: 1, name: "app:fuzz", token: None };
            FromPeer::Hello(hello).encode(&mut first);
            match Unstructured::new(data).arbitrary_take_rest_iter() {
                Ok(steps) => steps.take(MOST_STEPS).map_while(Result::ok).collect(),
                Err(_) => return,
            }
        }
    };
    STAGE.with_borrow_mut(|stage| {
        let running = stage.get_or_insert_with(start);
        converse(running, &first, &steps);
        check(running);
    });
}

fn start() -> Stage {
    let dir = scratch();
    fs::write(dir.path().join("echo.wasm"), echo_component()).unwrap();
    let uid = fs::metadata(dir.path()).unwrap().uid();
    let file = dir.path().join("weir.toml");
    fs::write(&file, FILE.replace("UID", &uid.to_string())).unwrap();
    let mut config = weir_host::load(&file).unwrap();
    config.main.cache_size = Some(0);
    let socket = PeerSocket::bind(config.main.peer_socket.as_deref().unwrap()).unwrap();
    Stage::start(Main::builder(config).attach(|attached| socket.serve(attached)), dir)
}

fn converse(stage: &Stage, first: &[u8], steps: &[Step<'_>]) {
    let mut stream = UnixStream::connect(stage.dir.path().join("peers.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut input = BytesMut::new();
    // Main may have closed the connection.
    let mut _closed = stream.write_all(first);
    let client = stage.main.client();
    let within = Duration::from_millis(2);
    for step in steps {
        match step {
            Step::Send(frame) => {
                let mut output = BytesMut::new();
                frame.encode(&mut output);
                _closed = stream.write_all(&output);
            }
            Step::SendBytes(bytes) => _closed = stream.write_all(bytes),
            Step::Ask(payload) => {
                let options = CallOptions::default().timeout(within);
                let call = client.call_with("theirs@1", "echo@1", payload.to_vec(), options);
                let _whatever = stage.runtime.block_on(call);
            }
            Step::Tell(payload) => {
                stage.runtime.block_on(client.publish("a.b", payload.to_vec())).unwrap();
            }
            Step::Put(is_kept, payload) => {
                let queue = client.queue(if *is_kept { "kept" } else { "jobs" }).unwrap();
                let _whatever = stage.runtime.block_on(queue.put_within(within, payload.to_vec()));
            }
            Step::Read => {
                stream.set_nonblocking(true).unwrap();
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut bytes) {
                    input.extend_from_slice(&bytes[..read]);
                }
                stream.set_nonblocking(false).unwrap();
            }
        }
    }
    let _closed_already = stream.shutdown(Shutdown::Write);
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("Main does not end the session")
        }
        _ => input.extend_from_slice(&rest),
    }
    let mut is_closed = false;
    while let Some(frame) = next_frame(&mut input, frame_max(4096)).unwrap() {
        assert!(!is_closed, "a frame after the last");
        is_closed = matches!(FromMain::decode(&frame).unwrap(), FromMain::Close { .. });
    }
}

fn check(stage: &Stage) {
    let began = Instant::now();
    let sessions = || stage.main.peers().list().iter().map(|peer| peer.sessions.len()).sum::<usize>();
    while sessions() > 0 {
        assert!(began.elapsed() < PATIENCE, "a session is left over");
        std::thread::yield_now();
    }
    assert!(stage.main.control().topics().subscriptions.is_empty());
    let mut jobs = stage.main.client().queue("jobs").unwrap();
    while let Some(job) = jobs.try_take() {
        job.done();
    }
    for queue in stage.main.control().queues() {
        assert_eq!((queue.waiting, queue.in_hand, queue.bytes), (0, 0, 0), "{}", queue.queue);
    }
    stage.runtime.block_on(stage.check());
}

//! The programs of `examples/peers`, as far as there is a Python to run them.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use bytes::Bytes;
use weir_names::Error;
use weir_peer::frame::{FromMain, FromPeer};

use crate::fake::{FakeMain, FakeSocket};

/// A program that is killed with the test.
struct Program(Child);

impl Program {
    /// Starts Python with these arguments in the folder of the examples. `None`: there is no Python here.
    fn start(arguments: &[&str]) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/peers");
        let started = Command::new("python3")
            .arg("-B")
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn();
        if started.is_err() {
            eprintln!("skipped: there is no python3");
        }
        started.ok().map(Self)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

const CLIENT: &str = r#"
import sys
from weir_peer import *

peer = Peer(sys.argv[1], "app:test", "secret", events=2)
assert peer.call("a@1", "b", b"in") == b"out"
try:
    peer.call("a@1", "b", timeout_ms=250, provider="main")
except WeirError as error:
    assert (error.case, error.code, error.text) == ("handler", "not-found", "no key"), error
try:
    peer.call("a@1", "b")
except WeirError as error:
    assert (error.case, error.code, error.a, error.b) == ("too-large", "too-large", 9, 8), error
assert peer.publish("a.b", b"x", to="telemetry") == (1, 2, 3)
events = peer.subscribe("a.>")
assert [next(events).sequence for _ in range(3)] == [1, 2, 3]
events.close()
events = peer.subscribe("b.>")
assert next(events).sequence == 4
peer.call("a@1", "b")
events.close()
with peer.take("uploads") as job:
    assert (job.payload, job.sender, job.deliveries) == (b"work", "telemetry", 1)
peer.take("uploads").give_back()
peer.put("uploads", b"job", until_done=True)

def read(request):
    assert request.sender == "telemetry"
    return request.payload * 2

def reset(request):
    raise Failure("busy", "later")

peer.serve("thermal@1", {"read": read, "reset": reset})
ended = peer.wait()
assert (ended.code, ended.text) == ("stopping", "Main ends"), ended
try:
    peer.call("a@1", "b")
except Ended as error:
    print("all well")
"#;

#[tokio::test]
async fn the_client_in_python_speaks_the_protocol() {
    let socket = FakeSocket::new();
    let Some(mut program) = Program::start(&["-c", CLIENT, socket.path.to_str().unwrap()]) else { return };
    let mut main = socket.welcome().await;
    main.expect_frame(FromPeer::Call {
        id: 1,
        timeout_ms: 0,
        contract: "a@1",
        operation: "b",
        provider: None,
        payload: "in".into(),
    })
    .await;
    main.answer(1, "out").await;
    let errors = [Error::handler("not-found", "no key"), Error::TooLarge { bytes: 9, allowed: 8 }];
    for error in errors {
        let id = main.expect_id().await;
        main.send(&FromMain::Error { id, error }).await;
    }
    let id = main.expect_id().await;
    main.answer(id, vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]).await;

    main.accept_subscription(9).await;
    main.event(9, 1).await;
    main.event(9, 2).await;
    main.expect_frame(FromPeer::Credit { events: 1 }).await;
    main.event(9, 3).await;
    main.expect_frame(FromPeer::Credit { events: 1 }).await;
    main.expect_frame(FromPeer::Credit { events: 1 }).await;
    main.expect_frame(FromPeer::Unsubscribe { id: 0, subscription: 9 }).await;

    main.accept_subscription(10).await;
    main.event(10, 4).await;
    main.event(10, 5).await;
    main.expect_frame(FromPeer::Credit { events: 1 }).await;
    let id = main.expect_id().await;
    main.answer(id, "").await;
    main.expect_frame(FromPeer::Unsubscribe { id: 0, subscription: 10 }).await;
    // For the event that nobody reads any more.
    main.expect_frame(FromPeer::Credit { events: 1 }).await;

    for job in [1, 2] {
        let id = main.expect_id().await;
        main.answer(id, "").await;
        main.job(job, "uploads").await;
        let settled = if job == 1 { FromPeer::Done { job } } else { FromPeer::Return { job } };
        main.expect_frame(settled).await;
    }
    let id = main.expect_id().await;
    main.answer(id, 1_u64.to_le_bytes().to_vec()).await;

    let id = main.expect_id().await;
    main.answer(id, "").await;
    main.request(1, "read").await;
    main.expect_frame(FromPeer::Reply { request: 1, payload: "inin".into() }).await;
    main.request(2, "reset").await;
    main.expect_frame(FromPeer::Fail { request: 2, error: weir_names::HandlerError::new("busy", "later") })
        .await;
    main.send(&FromMain::Close { code: "stopping", text: "Main ends" }).await;
    assert!(program.0.wait().unwrap().success());
}

#[tokio::test]
async fn the_thermal_sidecar_tells_temperatures_and_their_changes() {
    let socket = FakeSocket::new();
    let zones = tempfile::tempdir().unwrap();
    let zone = zones.path().join("thermal_zone0");
    fs::create_dir(&zone).unwrap();
    fs::write(zone.join("type"), "cpu\n").unwrap();
    fs::write(zone.join("temp"), "41500\n").unwrap();
    let (path, directory) = (socket.path.to_str().unwrap(), zones.path().to_str().unwrap());
    let arguments = ["thermal.py", "--socket", path, "--directory", directory, "--every", "0.01"];
    let Some(_program) = Program::start(&arguments) else { return };
    let mut main = socket.welcome().await;
    let operations = vec!["read"];
    main.expect_frame(FromPeer::Serve { id: 1, contract: "thermal@1", operations }).await;
    main.answer(1, "").await;
    for celsius in ["41.5", "43.0"] {
        let expected = format!(r#"{{"thermal_zone0": {{"type": "cpu", "celsius": {celsius}}}}}"#);
        let id = main
            .expect(|frame| match frame {
                FromPeer::Publish { id, topic: "thermal.changed", payload, .. } => {
                    assert_eq!(payload, expected);
                    id
                }
                other => panic!("{other:?}"),
            })
            .await;
        main.answer(id, vec![0; 12]).await;
        fs::write(zone.join("temp.new"), "43000\n").unwrap();
        fs::rename(zone.join("temp.new"), zone.join("temp")).unwrap();
    }
    main.request(1, "read").await;
    main.expect(|frame| assert!(matches!(frame, FromPeer::Reply { request: 1, .. }), "{frame:?}")).await;
    fs::remove_file(zone.join("temp")).unwrap();
    main.request(2, "read").await;
    loop {
        let is_failure = main
            .expect(|frame| match frame {
                FromPeer::Fail { request: 2, error } => {
                    assert_eq!(error.code, "no-sensor");
                    true
                }
                // The zone that is gone is a change.
                FromPeer::Publish { .. } => false,
                other => panic!("{other:?}"),
            })
            .await;
        if is_failure {
            break;
        }
    }
}

/// What Main knows of the jobs of a store.
#[derive(Default)]
struct Jobs {
    put: u32,
    acknowledged: BTreeSet<Bytes>,
    done: BTreeSet<Bytes>,
    dead: BTreeSet<Bytes>,
}

/// A store in a file, killed and started again.
struct Store {
    socket: FakeSocket,
    file: PathBuf,
    _dir: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { socket: FakeSocket::new(), file: dir.path().join("uploads.log"), _dir: dir }
    }

    async fn start(&self) -> Option<(Program, FakeMain)> {
        let (path, file) = (self.socket.path.to_str().unwrap(), self.file.to_str().unwrap());
        let program = Program::start(&["store.py", "--socket", path, "--file", file, "--at-once", "3"])?;
        let mut main = self.socket.welcome().await;
        let operations = vec!["uploads"];
        main.expect_frame(FromPeer::Serve { id: 1, contract: "uploads.store@1", operations }).await;
        main.answer(1, "").await;
        Some((program, main))
    }
}

impl Jobs {
    /// Puts a job by the store.
    async fn put(&mut self, main: &mut FakeMain) {
        self.put += 1;
        let payload = format!("job {}", self.put);
        main.send(&FromMain::Request {
            request: self.put,
            remaining_ms: 5000,
            message: 1,
            sender: "telemetry",
            contract: "uploads.store@1",
            operation: "uploads",
            payload: payload.into(),
        })
        .await;
    }

    /// Reads a frame, and answers a job that is given to Main unless it is the `nth`.
    async fn turn(&mut self, main: &mut FakeMain, answers: bool) {
        let given = main
            .expect(|frame| match frame {
                FromPeer::Reply { request, .. } => {
                    self.acknowledged.insert(format!("job {request}").into());
                    None
                }
                FromPeer::Put { id, until_done: true, queue: "uploads", payload, .. } => Some((id, payload)),
                other => panic!("{other:?}"),
            })
            .await;
        let Some((id, payload)) = given else { return };
        if payload.ends_with(b"7") {
            self.dead.insert(payload);
            main.send(&FromMain::Error { id, error: Error::handler("dead", "delivered 5 times") }).await;
        } else if answers {
            self.done.insert(payload);
            main.answer(id, 1_u64.to_le_bytes().to_vec()).await;
        }
    }
}

#[tokio::test]
async fn a_store_that_is_killed_at_any_moment_loses_no_acknowledged_job() {
    let (store, mut jobs) = (Store::new(), Jobs::default());
    for round in 0..12_u32 {
        let Some((mut program, mut main)) = store.start().await else { return };
        // At most 8 requests unanswered, as its hello says.
        for _ in 0..8 {
            jobs.put(&mut main).await;
        }
        for turn in 0..round {
            jobs.turn(&mut main, (round + turn).is_multiple_of(2)).await;
        }
        program.kill();
        let mut file = fs::OpenOptions::new().append(true).open(&store.file).unwrap();
        if round.is_multiple_of(3) {
            file.write_all(b"0badc0de job 9999 dG9y").unwrap();
        }
    }
    let (mut program, mut main) = store.start().await.unwrap();
    let is_settled =
        |jobs: &Jobs| jobs.acknowledged.iter().all(|job| jobs.done.contains(job) || jobs.dead.contains(job));
    while !is_settled(&jobs) {
        jobs.turn(&mut main, true).await;
    }
    assert!(jobs.acknowledged.len() > 20, "{} acknowledged", jobs.acknowledged.len());
    program.kill();
    let dead = fs::read_to_string(store.file.with_extension("log.dead")).unwrap();
    assert!(dead.lines().count() >= jobs.dead.len().saturating_sub(3), "{dead}");
    assert!(!store.file.with_extension("log.damaged").exists(), "a crash alone damages nothing");
}

#[tokio::test]
async fn a_store_keeps_every_good_line_of_a_damaged_file() {
    let store = Store::new();
    {
        let Some((_program, mut main)) = store.start().await else { return };
        let mut jobs = Jobs::default();
        for _ in 0..3 {
            jobs.put(&mut main).await;
        }
        while jobs.acknowledged.len() < 3 {
            jobs.turn(&mut main, false).await;
        }
    }
    let text = fs::read_to_string(&store.file).unwrap();
    fs::write(&store.file, text.replacen("job 2 ", "job 3 ", 1)).unwrap();
    let (_program, mut main) = store.start().await.unwrap();
    let mut given = BTreeSet::new();
    for _ in 0..2 {
        let payload = main.expect(|frame| match frame {
            FromPeer::Put { payload, .. } => payload,
            other => panic!("{other:?}"),
        });
        given.insert(payload.await);
    }
    assert_eq!(given.len(), 2);
    assert!(store.file.with_extension("log.damaged").exists());
}

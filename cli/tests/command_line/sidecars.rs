//! The programs of `examples/peers` beside a real Main, as far as there is a Python to run them.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use weir_peer::blocking::Peer;

use super::{
    peers::{connect, own_uid, with_socket},
    support::{Killed, Running, configured, until},
};

/// Jobs of the store.
const JOBS: usize = 1000;

/// Starts an example with these arguments. `None`: there is no Python here.
fn start_program(main: &Running, arguments: &[&str]) -> Option<Killed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/peers");
    let started = Command::new("python3")
        .arg("-B")
        .args(arguments)
        .arg("--socket")
        .arg(main.path().join("peers.sock"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        eprintln!("skipped: there is no python3");
    }
    started.ok().map(Killed)
}

fn is_connected(main: &Running, name: &str) -> bool {
    let peers = main.json(&["peers", "--json"]);
    let mut peers = peers["peers"].as_array().unwrap().iter();
    peers.any(|peer| peer["name"] == name && peer["sessions"][0]["serves"][0].is_string())
}

#[test]
fn a_sidecar_that_is_killed_with_a_request_in_hand_is_heard_of_at_once() {
    let main = Running::with(&with_socket(&format!(
        "[peer.\"sidecar:thermal\"]\nuid = {}\nfulfills = [\"thermal@1\"]\npublishes = [\"thermal.>\"]\n\
         [[extension]]\nid = \"puppet\"\npath = \"puppet.wasm\"\nfulfills = [\"puppet@1\"]\nwants = [\"thermal@1\"]\n",
        own_uid()
    )));
    let zone = main.path().join("thermal/thermal_zone0");
    fs::create_dir_all(&zone).unwrap();
    fs::write(zone.join("type"), "cpu\n").unwrap();
    fs::write(zone.join("temp"), "41500\n").unwrap();
    let folder = main.path().join("thermal");
    let arguments = ["thermal.py", "--directory", folder.to_str().unwrap()];
    let read = || main.weir(&["call", "thermal@1", "read"]);
    let temperatures = r#"{"thermal_zone0": {"type": "cpu", "celsius": 41.5}}"#;

    let Some(sidecar) = start_program(&main, &arguments) else { return };
    until("the sidecar serves", || is_connected(&main, "sidecar:thermal").then_some(()));
    assert_eq!(read().good(), temperatures);
    let by_extension = main.weir(&["call", "puppet@1", "run", "--raw", "call thermal@1 read x"]);
    assert_eq!(by_extension.good(), temperatures);

    sidecar.signal(Signal::STOP);
    let received =
        || main.json(&["peers", "--json"])["peers"][0]["sessions"][0]["received"].as_u64().unwrap();
    let before = received();
    let mut call = main.command(&["call", "--timeout", "10min", "thermal@1", "read"]);
    let call = call.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("the request is in hand", || (received() > before).then_some(()));
    let killed = Instant::now();
    drop(sidecar);
    let heard = call.wait_with_output().unwrap();
    let stderr = String::from_utf8(heard.stderr).unwrap();
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    assert_eq!(
        (heard.status.code(), stderr.as_str()),
        (Some(8), "error: the receiver stopped before it answered\n")
    );

    let refused = read();
    let expected = "error: no provider: `sidecar:thermal` is not connected; `weir ps` shows what runs\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (8, expected));
    let _sidecar = start_program(&main, &arguments);
    until("it serves again", || is_connected(&main, "sidecar:thermal").then_some(()));
    assert_eq!(read().good(), temperatures);
}

/// Takes jobs until all of these have come, and finishes each. Returns how many came.
fn finish(player: &Peer, wanted: &BTreeSet<String>) -> usize {
    let uploads = player.queue("uploads").unwrap();
    let (mut missing, mut taken) = (wanted.clone(), 0);
    while !missing.is_empty() {
        let job = uploads.take_within(Duration::from_secs(60)).unwrap();
        missing.remove(std::str::from_utf8(job.payload()).unwrap());
        job.done();
        taken += 1;
    }
    taken
}

#[test]
fn no_job_that_a_store_has_acknowledged_is_lost_when_it_and_main_are_killed() {
    let main = Running::start(configured(&with_socket(&format!(
        "[peer.\"sidecar:store\"]\nuid = {uid}\nfulfills = [\"uploads.store@1\"]\nputs = [\"uploads\"]\n\
         [peer.\"app:player\"]\nuid = {uid}\nputs = [\"uploads\"]\ntakes = [\"uploads\"]\n\
         [queue.uploads]\nmessages = 50\nwhen-full = \"block\"\nstore = \"uploads.store@1\"\nmax-deliveries = 5\n",
        uid = own_uid()
    ))));
    let file = main.path().join("uploads.log");
    let arguments = ["store.py", "--file", file.to_str().unwrap()];
    let Some(store) = start_program(&main, &arguments) else { return };
    until("the store serves", || is_connected(&main, "sidecar:store").then_some(()));

    let player = connect(&main, "app:player", None).unwrap();
    let uploads = player.queue("uploads").unwrap();
    let mut acknowledged: BTreeSet<String> = (0..JOBS).map(|number| format!("job {number}")).collect();
    for job in &acknowledged {
        uploads.put(job.clone()).unwrap();
    }
    // Some are done, some in hand, some in the queue, and the rest with the store alone.
    for _ in 0..10 {
        let job = uploads.take_within(Duration::from_secs(60)).unwrap();
        acknowledged.remove(std::str::from_utf8(job.payload()).unwrap());
        job.done();
    }
    let in_hand = [uploads.take().unwrap(), uploads.take().unwrap()];
    drop(store);
    main.signal(Signal::KILL);
    drop((in_hand, uploads, player));

    let main = Running::start(main.into_dir());
    let player = connect(&main, "app:player", None).unwrap();
    assert!(matches!(player.queue("uploads").unwrap().put("more"), Err(weir_peer::Error::NoProvider(_))));
    let _store = start_program(&main, &arguments);
    let taken = finish(&player, &acknowledged);
    assert!(taken <= JOBS, "{taken} jobs came");
    // What was finished does not come again.
    until("all jobs are done", || {
        let text = fs::read_to_string(&file).unwrap();
        let count = |kind: &str| text.lines().filter(|line| line.contains(kind)).count();
        (count(" done ") > count(" job ")).then_some(())
    });
}

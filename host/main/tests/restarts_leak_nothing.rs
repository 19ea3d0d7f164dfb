//! What has ended leaves nothing behind, however often: instances, and extensions. Alone in its process, because it
//! measures its memory.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::Mutex};
use weir_host::{
    Client, Config, Error, ExtensionConfig, Main, MainConfig, Service,
    config::{DirGrant, RestartPolicy},
    control::ExtensionState,
    events::{MainEvent, MainEvents},
};

const WARM_UP: usize = 1_000;
const CYCLES: usize = 10_000;

/// Resident bytes that all cycles may add: 39 each. Usually they add 4 to 8 KiB; a leak of 100 bytes a cycle adds 616
/// KiB, the rest of it out of the heap's free memory.
const ALLOWED: u64 = 384 * 1024;

/// How many extensions come and go while all is measured, and how many before.
const EXTENSIONS: usize = 1_000;
const FIRST_EXTENSIONS: usize = 400;

/// Resident bytes that each extension may leave. Its name stays for as long as Main runs, because messages carry its
/// number. Usually it leaves 300 bytes, and 700 until the bounded tables of log lines and events are full.
const ALLOWED_EACH: u64 = 1024;

/// Each test has the process for itself.
static ALONE: Mutex<()> = Mutex::const_new(());

const PATIENCE: Duration = Duration::from_secs(120);

/// Ends of an instance, and the outcome of its request in hand.
const KILLS: [(&str, Error); 5] = [
    // With a file open and a request under way.
    ("all open /data/file; send neighbour@1 run echo x; trap", Error::Trapped),
    ("exit 1", Error::PeerGone),
    ("spin", Error::Trapped),
    ("all subscribe t; publish t x; panic on purpose", Error::Trapped),
    ("exit 0", Error::PeerGone),
];

#[tokio::test]
async fn ten_thousand_restarts_leave_memory_files_threads_tasks_and_waiters_as_they_were() {
    let _alone = ALONE.lock().await;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "x").unwrap();
    let main = start(directory.path()).await;
    let served = Arc::new(AtomicBool::new(true));
    let neighbour = tokio::spawn(use_neighbour(main.client().clone(), served.clone()));

    let mut events = main.control().events();
    for cycle in 0..WARM_UP {
        kill(&main, &mut events, cycle).await;
    }
    let before = Footprint::of(main.client()).await;
    for cycle in 0..CYCLES {
        kill(&main, &mut events, cycle).await;
    }
    let after = Footprint::of(main.client()).await;

    served.store(false, Ordering::Relaxed);
    assert!(neighbour.await.unwrap() > CYCLES, "the neighbour was served all the while");
    let status = main.control().status("victim").unwrap();
    assert_eq!((status.restarts, status.state), ((WARM_UP + CYCLES) as u64, ExtensionState::Ready));
    assert_eq!(status.inbox_messages, 0);
    assert_eq!(main.client().waiters(), 0);
    assert_eq!(after.counted, before.counted);
    let grown = after.resident.saturating_sub(before.resident);
    assert!(grown <= ALLOWED, "{grown} bytes more: {before:?}, {after:?}");
}

#[tokio::test]
async fn a_thousand_extensions_come_change_and_go_and_nobody_loses_a_call() {
    let _alone = ALONE.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let main = start(directory.path()).await;
    let served = Arc::new(AtomicBool::new(true));
    let neighbour = tokio::spawn(use_neighbour(main.client().clone(), served.clone()));
    for number in 0..FIRST_EXTENSIONS {
        come_and_go(&main, number).await;
    }
    let before = Footprint::of(main.client()).await;
    for number in FIRST_EXTENSIONS..FIRST_EXTENSIONS + EXTENSIONS {
        come_and_go(&main, number).await;
    }
    let after = Footprint::of(main.client()).await;
    served.store(false, Ordering::Relaxed);
    assert!(neighbour.await.unwrap() > EXTENSIONS, "the neighbour was served all the while");
    assert_eq!(main.control().configuration().extensions.len(), 2);
    assert_eq!(after.counted, before.counted);
    let grown = after.resident.saturating_sub(before.resident);
    assert!(grown <= ALLOWED_EACH * EXTENSIONS as u64, "{grown} bytes more: {before:?}, {after:?}");
}

/// Adds an extension, calls it, changes it, calls it again, and removes it.
async fn come_and_go(main: &Main, number: usize) {
    let (control, client, id) = (main.control(), main.client(), format!("e-{number}"));
    let mut extension = puppet(&id);
    control.add(extension.clone()).await.unwrap();
    let contract = format!("{id}@1");
    assert_eq!(client.call(&contract, "run", "echo 1").await.unwrap(), "1");
    extension.config.insert("changed".to_owned(), "yes".to_owned());
    control.update(extension).await.unwrap();
    assert_eq!(client.call(&contract, "run", "config changed").await.unwrap(), "yes");
    control.remove(&id).await.unwrap();
}

async fn start(directory: &std::path::Path) -> Main {
    let mut victim = puppet("victim");
    victim.wants = vec!["neighbour@1".parse().unwrap()];
    victim.publishes = vec!["t".parse().unwrap()];
    victim.subscribes = vec!["t".parse().unwrap()];
    victim.grants.dirs = vec![DirGrant::read_write(directory, "/data".parse().unwrap())];
    victim.restart.policy = RestartPolicy::Always;
    victim.restart.backoff = Duration::from_millis(1);
    victim.restart.max_backoff = Duration::from_millis(1);
    victim.restart.failures = 1000;
    victim.restart.window = Duration::from_millis(10);
    // Soon used up by a spin.
    victim.limits.message_size = 64 * 1024;
    victim.limits.fuel_per_message = 1_000_000;
    victim.limits.cpu_share = "100%".parse().unwrap();

    let mut main = MainConfig::default();
    main.request_timeout = PATIENCE;
    // Always the same thread, because it never rests for long.
    main.blocking_threads = 1;
    let tasks = Service::new("tasks@1".parse().unwrap()).on("count".parse().unwrap(), async |_| {
        // Of Main's runtime, where this runs.
        Ok(Handle::current().metrics().num_alive_tasks().to_string().into())
    });
    let config = Config::new(main, vec![victim, puppet("neighbour")]);
    Main::builder(config).serve(tasks).start().await.unwrap()
}

fn puppet(id: &str) -> ExtensionConfig {
    let mut puppet = ExtensionConfig::new(id.parse().unwrap(), test_guests::path("puppet"));
    puppet.limits.ready_timeout = PATIENCE;
    puppet.fulfills = vec![format!("{id}@1").parse().unwrap()];
    puppet.config.insert("contract".to_owned(), format!("{id}@1"));
    puppet
}

/// Ends the instance with another request waiting; returns when the next one serves.
async fn kill(main: &Main, events: &mut MainEvents, cycle: usize) {
    let (command, outcome) = &KILLS[cycle % KILLS.len()];
    let client = main.client();
    let (killed, behind) =
        tokio::join!(client.call("victim@1", "run", *command), client.call("victim@1", "run", "echo next"));
    assert_eq!(killed.as_ref(), Err(outcome), "cycle {cycle}: {command}");
    match behind {
        Ok(answer) => assert_eq!(answer, "next"),
        Err(error) => assert!(matches!(error, Error::NoProvider(_)), "cycle {cycle}: {error}"),
    }
    loop {
        match events.next().await.unwrap() {
            MainEvent::State { extension, to: ExtensionState::Ready, .. }
                if extension.as_str() == "victim" =>
            {
                return;
            }
            MainEvent::Lagged { missed } => panic!("{missed} events missed in cycle {cycle}"),
            _ => {}
        }
    }
}

/// Calls the neighbour while `goes_on`; returns how often.
async fn use_neighbour(client: Client, goes_on: Arc<AtomicBool>) -> usize {
    let mut calls = 0;
    while goes_on.load(Ordering::Relaxed) {
        assert_eq!(client.call("neighbour@1", "run", "echo here").await.unwrap(), "here");
        calls += 1;
    }
    calls
}

#[derive(Debug)]
struct Footprint {
    resident: u64,
    counted: Counted,
}

#[derive(Debug, PartialEq, Eq)]
struct Counted {
    files: usize,
    mappings: usize,
    threads: usize,
    tasks: usize,
}

impl Footprint {
    async fn of(client: &Client) -> Self {
        let tasks = client.call("tasks@1", "count", "").await.unwrap();
        Self {
            resident: resident(),
            counted: Counted {
                files: fs::read_dir("/proc/self/fd").unwrap().count(),
                mappings: fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
                threads: fs::read_dir("/proc/self/task").unwrap().count(),
                tasks: str::from_utf8(&tasks).unwrap().parse().unwrap(),
            },
        }
    }
}

fn resident() -> u64 {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

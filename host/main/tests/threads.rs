//! Extensions cost no threads. Alone in its process, because it counts them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{fs, time::Duration};

use weir_host::{Config, ExtensionConfig, Main, MainConfig, control::ExtensionState};

const BLOCKING_THREADS: u16 = 2;

/// Threads of the blocking pool, which come and go, and others.
fn threads() -> (usize, usize) {
    let names = fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let (pool, others): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("weir-blocking"));
    (pool.len(), others.len())
}

fn echo(number: usize) -> ExtensionConfig {
    let contract = format!("echo.n{number}@1");
    let mut echo =
        ExtensionConfig::new(format!("echo-{number}").parse().unwrap(), test_guests::path("puppet"));
    echo.limits.ready_timeout = Duration::from_secs(120);
    echo.fulfills = vec![contract.parse().unwrap()];
    echo.config.insert("contract".to_owned(), contract);
    echo
}

/// The mask of blocked signals of each of Main's threads.
fn blocked() -> Vec<u64> {
    // A thread of the pool may end meanwhile.
    let tasks = fs::read_dir("/proc/self/task").unwrap().filter_map(|task| Some(task.ok()?.path()));
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.join("status")).ok());
    let ours = statuses.filter(|status| status.starts_with("Name:\tweir-"));
    let mask = |status: String| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap()
    };
    ours.map(mask).collect()
}

#[tokio::test]
async fn one_a_hundred_and_a_thousand_extensions_run_on_the_same_number_of_threads() {
    let mut main = MainConfig::default();
    main.blocking_threads = BLOCKING_THREADS;
    main.request_timeout = Duration::from_secs(120);
    let mut counts = Vec::new();
    for extensions in [1, 100, 1000] {
        let config = Config::new(main.clone(), (0..extensions).map(echo).collect());
        let main = Main::builder(config).start().await.unwrap();
        assert!(main.control().extensions().iter().all(|status| status.state == ExtensionState::Ready));
        for number in [0, extensions / 2, extensions - 1] {
            let answer =
                main.client().call(&format!("echo.n{number}@1"), "run", format!("echo {number}")).await;
            assert_eq!(answer.unwrap(), number.to_string());
        }
        // SIGTERM would be for the embedding program, SIGSEGV is for wasmtime.
        let (term, segv) = (1 << (15 - 1), 1 << (11 - 1));
        let masks = blocked();
        assert!(masks.len() >= 2 && masks.iter().all(|mask| mask & (term | segv) == term), "{masks:x?}");
        let (pool, others) = threads();
        assert!(pool <= usize::from(BLOCKING_THREADS), "{pool} threads in the blocking pool");
        counts.push(others);
        main.shutdown().await.unwrap();
    }
    assert_eq!(counts, [counts[0]; 3]);
}

//! Runs from async code, plain threads, inside a runtime, and as Main ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::time::timeout;
use weir_host::{
    Config, HandlerError, Main, Service,
    blocking::{BlockingError, wait},
    hooks::{HookCall, HookError, HookOutcome},
};

use super::support::*;

fn call(task: &str) -> HookCall {
    HookCall::new().param("DO", task)
}

#[test]
fn a_plain_loop_runs_hooks_on_its_own_thread() {
    let files = dir(&["10-a", "20-b"]);
    let main = wait(builder().start()).unwrap();
    let dir = main.hooks().open(config(&files)).unwrap();
    for _ in 0..50 {
        let report = dir.run_blocking(call("exit 33")).unwrap();
        assert_eq!(report.runs.len(), 2);
        assert_eq!(*report.outcome(), HookOutcome::Warning { code: 33 });
    }
    let slept = dir.run_blocking(call("sleep 0.1")).unwrap();
    assert!(slept.is_success() && slept.duration >= Duration::from_millis(200));
    main.shutdown_blocking().unwrap();
}

#[test]
fn what_async_and_blocking_runs_report_is_the_same() {
    let files = dir(&["10-a"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let main = runtime.block_on(main());
    let mut config = config(&files);
    config.timeout = Duration::from_secs(1);
    config.limits.fuel_to_start = 50_000_000;
    let dir = main.hooks().open(config).unwrap();
    for task in
        ["ok", "exit 7", "trap", "loop", "flood", "allocate", "sleep 60", "stack", "env", "nothing known"]
    {
        let there = runtime.block_on(run(&dir, task));
        let here = dir.run_blocking(call(task)).unwrap();
        assert_eq!(there.runs[0].outcome, here.runs[0].outcome, "{task}");
        assert_eq!(there.runs[0].stdout, here.runs[0].stdout, "{task}");
        assert_eq!(there.runs[0].stderr, here.runs[0].stderr, "{task}");
    }
    drop(main);
}

#[test]
fn many_threads_run_a_directory_at_once_and_each_gets_its_own_answer() {
    let files = dir(&["10-a"]);
    let main = wait(builder().start()).unwrap();
    let dir = main.hooks().open(config(&files)).unwrap();
    thread::scope(|scope| {
        for number in 0..32 {
            let dir = dir.clone();
            scope.spawn(move || {
                for turn in 0..10 {
                    let said = format!("{number} {turn}");
                    let report = dir.run_blocking(call("cat").stdin(said.clone())).unwrap();
                    assert_eq!(text(&report.runs[0].stdout), said);
                }
            });
        }
    });
    main.shutdown_blocking().unwrap();
}

#[test]
fn who_finds_no_place_until_its_time_is_over_hears_that() {
    let files = dir(&["10-a"]);
    let main = wait(builder().start()).unwrap();
    let mut config = config(&files);
    config.at_once = 1;
    let dir = main.hooks().open(config).unwrap();
    dir.run_blocking(call("ok")).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| dir.run_blocking(call("sleep 2")).unwrap());
        pause(Duration::from_millis(500));
        let refused = dir.run_blocking(call("ok").timeout(Duration::from_millis(100)));
        assert!(matches!(refused, Err(BlockingError::Call(HookError::TimedOut))), "{refused:?}");
        assert!(dir.run_blocking(call("ok")).unwrap().is_success(), "who can wait gets its turn");
    });
    main.shutdown_blocking().unwrap();
}

#[test]
fn the_blocking_entry_says_so_inside_of_async_code_and_works_beside_it() {
    let files = dir(&["10-a"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let main = runtime.block_on(main());
    let dir = main.hooks().open(config(&files)).unwrap();
    let task = {
        let dir = dir.clone();
        runtime.spawn(async move { dir.run_blocking(call("ok")) })
    };
    assert!(matches!(runtime.block_on(task).unwrap(), Err(BlockingError::InAsync)));
    runtime.block_on(async {
        assert!(matches!(dir.run_blocking(call("ok")), Err(BlockingError::InAsync)));
        let dir = dir.clone();
        let pool = tokio::task::spawn_blocking(move || dir.run_blocking(call("sleep 0.1")));
        assert!(pool.await.unwrap().unwrap().is_success());
    });
    let _inside = runtime.enter();
    assert!(dir.run_blocking(call("ok")).unwrap().is_success());
    drop(_inside);
    drop(main);
}

#[tokio::test]
async fn handlers_of_main_run_hooks_and_a_blocking_one_refuses_on_the_worker() {
    let files = dir(&["10-a"]);
    let slot = Arc::new(std::sync::OnceLock::<weir_host::hooks::HookDir>::new());
    let failed = |error: String| HandlerError::new("failed", error);
    let said = |report: weir_host::hooks::HookReport| Ok(format!("{:?}", report.outcome()).into());
    let (own, other, wrong) = (slot.clone(), slot.clone(), slot.clone());
    let service = Service::new("test@1".parse().unwrap())
        .on("async".parse().unwrap(), move |_| {
            let dir = own.get().unwrap().clone();
            async move { dir.run(call("exit 34")).await.map_err(|e| failed(e.to_string())).and_then(said) }
        })
        .on_blocking("blocking".parse().unwrap(), move |_| {
            let dir = other.get().unwrap();
            dir.run_blocking(call("exit 35")).map_err(|error| failed(error.to_string())).and_then(said)
        })
        .on("wrong".parse().unwrap(), move |_| {
            let dir = wrong.get().unwrap();
            std::future::ready(
                dir.run_blocking(call("ok")).map_err(|error| failed(error.to_string())).and_then(said),
            )
        });
    let mut config = Config::default();
    config.main.request_timeout = PATIENCE;
    // With one thread, a handler that waits for another would wait for ever.
    config.main.blocking_threads = 2;
    let main = Main::builder(config).serve(service).start().await.unwrap();
    slot.set(main.hooks().open(super::support::config(&files)).unwrap()).unwrap();
    let ask = async |operation: &str| {
        let answer = timeout(PATIENCE, main.client().call("test@1", operation, "")).await.unwrap();
        answer.map(|bytes| text(&bytes).to_owned()).map_err(|error| error.to_string())
    };
    assert_eq!(ask("async").await.unwrap(), "Warning { code: 34 }");
    assert_eq!(ask("blocking").await.unwrap(), "Warning { code: 35 }");
    assert!(ask("wrong").await.unwrap_err().contains("from inside an async task"));
    let many = (0..20).map(|n| ask(if n % 2 == 0 { "blocking" } else { "async" }));
    for answer in futures_util::future::join_all(many).await {
        answer.unwrap();
    }
    main.shutdown().await.unwrap();
}

#[test]
fn as_main_ends_what_runs_is_interrupted_and_nothing_begins() {
    let files = dir(&["10-a"]);
    for task in ["sleep 3600", "loop"] {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let main = runtime.block_on(main());
        let mut config = config(&files);
        config.limits.fuel_to_start = 1_000_000_000_000_000;
        config.limits.cpu_share = "100%".parse().unwrap();
        let dir = main.hooks().open(config).unwrap();
        dir.run_blocking(call("ok")).unwrap();
        let here = thread::spawn({
            let dir = dir.clone();
            move || dir.run_blocking(call(task))
        });
        let there = runtime.spawn({
            let dir = dir.clone();
            async move { dir.run(call(task)).await }
        });
        pause(Duration::from_millis(500));
        runtime.block_on(async { timeout(PATIENCE, main.shutdown()).await.unwrap().unwrap() });
        let here = here.join().unwrap().unwrap();
        assert_eq!(*here.outcome(), HookOutcome::Interrupted);
        let there = runtime.block_on(async { timeout(PATIENCE, there).await.unwrap().unwrap() });
        match there {
            Ok(report) => assert_eq!(*report.outcome(), HookOutcome::Interrupted),
            Err(error) => assert!(matches!(error, HookError::Ended), "{error}"),
        }
        assert!(matches!(dir.run_blocking(call("ok")), Err(BlockingError::Call(HookError::Ended))));
        assert!(matches!(runtime.block_on(dir.run(call("ok"))), Err(HookError::Ended)));
    }
}

#[test]
fn threads_that_run_hooks_while_main_ends_get_an_answer_or_an_error() {
    let files = dir(&["10-a"]);
    for _ in 0..20 {
        let main = wait(builder().start()).unwrap();
        let dir = main.hooks().open(config(&files)).unwrap();
        dir.run_blocking(call("ok")).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        match dir.run_blocking(call("sleep 0.001")) {
                            Ok(report) if *report.outcome() == HookOutcome::Interrupted => {}
                            Ok(report) => assert!(report.is_success(), "{report:?}"),
                            Err(error) => assert!(matches!(error, BlockingError::Call(HookError::Ended))),
                        }
                    }
                });
            }
            pause(Duration::from_millis(30));
            main.shutdown_blocking().unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[tokio::test]
async fn who_no_longer_waits_ends_the_hook() {
    let (main, files) = (main().await, dir(&["10-a"]));
    let mut config = config(&files);
    config.at_once = 1;
    let dir = main.hooks().open(config).unwrap();
    run(&dir, "ok").await;
    for _ in 0..10 {
        let gone = timeout(Duration::from_millis(50), dir.run(call("sleep 3600"))).await;
        assert!(gone.is_err());
        let next = dir.run(call("ok").timeout(PATIENCE)).await.unwrap();
        assert!(next.is_success(), "the place is free again");
    }
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn extensions_are_served_while_hooks_keep_the_worker_busy() {
    let (main, files) = (main().await, dir(&["10-a"]));
    let mut config = config(&files);
    config.limits.fuel_to_start = 1_000_000_000_000_000;
    config.limits.cpu_share = "100%".parse().unwrap();
    let dir = main.hooks().open(config).unwrap();
    run(&dir, "ok").await;
    let busy = tokio::spawn({
        let dir = dir.clone();
        async move { dir.run(call("loop")).await }
    });
    for _ in 0..50 {
        timeout(PATIENCE, main.control().ping()).await.unwrap().unwrap();
    }
    assert!(!busy.is_finished());
    busy.abort();
    main.shutdown().await.unwrap();
}

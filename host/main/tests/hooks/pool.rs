//! Blocking runs work on the caller's thread, even with Main's pool used up.

use std::{
    fs,
    sync::{Arc, Mutex, OnceLock, mpsc},
    thread,
    time::Duration,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use weir_host::{
    Config, HandlerError, Main, Service,
    blocking::wait,
    config::DirGrant,
    hooks::{HookCall, HookOutcome},
};

use super::support::*;

/// Ample without waiting for a thread.
const SHORT: Duration = Duration::from_secs(15);

fn builder_with_threads(threads: u16) -> weir_host::Builder {
    let mut config = Config::new(main_config(), Vec::new());
    config.main.blocking_threads = threads;
    config.main.request_timeout = PATIENCE;
    Main::builder(config)
}

fn call(task: &str) -> HookCall {
    HookCall::new().param("DO", task).timeout(SHORT)
}

fn grant(path: &std::path::Path) -> DirGrant {
    DirGrant::read_write(path, "/data".parse().unwrap())
}

#[test]
fn files_of_a_blocking_run_are_read_on_the_thread_of_its_caller() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("a"), "12345").unwrap();
    let files = dir(&["10-a"]);
    let (go, gone) = mpsc::channel::<()>();
    let (taken, is_taken) = mpsc::channel();
    let gone = Mutex::new(gone);
    let service = Service::new("test@1".parse().unwrap()).on_blocking("hold".parse().unwrap(), move |_| {
        taken.send(()).unwrap();
        // Ends when the sender is dropped.
        let _dropped = gone.lock().unwrap().recv_timeout(PATIENCE);
        Ok("".into())
    });
    let main = wait(builder_with_threads(1).serve(service).start()).unwrap();
    let mut config = config(&files);
    config.grants.dirs.push(grant(data.path()));
    let dir = main.hooks().open(config).unwrap();
    // Until it is old enough to be known, and needs no loading.
    pause(Duration::from_secs(5));
    assert!(dir.run_blocking(call("open /data/a").timeout(PATIENCE)).unwrap().is_success());
    let report = thread::scope(|scope| {
        scope.spawn(|| wait(main.client().call("test@1", "hold", "")));
        is_taken.recv_timeout(PATIENCE).unwrap();
        let report = dir.run_blocking(call("open /data/a"));
        drop(go);
        report
    });
    assert_eq!(report.unwrap().runs[0].outcome, HookOutcome::Ok);
    main.shutdown_blocking().unwrap();
}

#[tokio::test]
async fn a_blocking_handler_runs_hooks_on_the_only_thread_of_the_pool() {
    let files = dir(&["10-a"]);
    let slot = Arc::new(OnceLock::<weir_host::hooks::HookDir>::new());
    let own = slot.clone();
    let service = Service::new("test@1".parse().unwrap()).on_blocking("run".parse().unwrap(), move |_| {
        let dir = own.get().unwrap();
        let report =
            dir.run_blocking(call("ok")).map_err(|error| HandlerError::new("failed", error.to_string()))?;
        Ok(format!("{:?}", report.outcome()).into())
    });
    let main = builder_with_threads(1).serve(service).start().await.unwrap();
    slot.set(main.hooks().open(config(&files)).unwrap()).unwrap();
    let answer = main.client().call("test@1", "run", "").await.unwrap();
    assert_eq!(text(&answer), "Ok");
    main.shutdown().await.unwrap();
}

/// The host opens a file for writing to set its times.
#[test]
fn setting_the_times_of_a_fifo_holds_up_nobody() {
    let data = tempfile::tempdir().unwrap();
    mknodat(CWD, data.path().join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let files = dir(&["10-a"]);
    let main = wait(builder_with_threads(1).start()).unwrap();
    let mut config = config(&files);
    config.grants.dirs.push(grant(data.path()));
    let dir = main.hooks().open(config).unwrap();
    assert!(dir.run_blocking(call("ok").timeout(PATIENCE)).unwrap().is_success());
    let (tell, told) = mpsc::channel();
    thread::spawn({
        let dir = dir.clone();
        move || tell.send(dir.run_blocking(call("touch fifo")))
    });
    let report = told.recv_timeout(2 * SHORT).expect("it came back").unwrap();
    let next = dir.run_blocking(call("ok")).map(|report| report.outcome().clone());
    assert!(matches!(next, Ok(HookOutcome::Ok)), "the pool has its thread: {next:?}");
    assert_eq!(report.runs[0].outcome, HookOutcome::ScriptError { code: 1, is_reserved: false });
}

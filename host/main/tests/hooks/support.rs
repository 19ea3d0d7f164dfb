//! Directories of hooks that follow commands, and their Main.

use std::{fs, path::Path, time::Duration};

use tempfile::TempDir;
use weir_host::{
    Builder, Config, Main, MainConfig,
    hooks::{HookCall, HookDir, HookDirConfig, HookOutcome, HookReport, HookRun},
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn main() -> Main {
    builder().start().await.unwrap()
}

pub(crate) fn builder() -> Builder {
    Main::builder(Config::new(main_config(), Vec::new()))
}

/// With a cache for all tests, so that each component is compiled once.
pub(crate) fn main_config() -> MainConfig {
    let mut config = MainConfig::default();
    config.cache_dir = Some(concat!(env!("CARGO_TARGET_TMPDIR"), "/cache").into());
    config
}

pub(crate) fn dir(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        put(dir.path(), name, "hook");
    }
    dir
}

/// Copies a guest into a directory, replacing the file of that name.
pub(crate) fn put(dir: &Path, name: &str, guest: &str) {
    let new = dir.join(".new");
    fs::copy(test_guests::path(guest), &new).unwrap();
    fs::rename(new, dir.join(format!("{name}.wasm"))).unwrap();
}

pub(crate) fn config(dir: &TempDir) -> HookDirConfig {
    let mut config = HookDirConfig::new(dir.path());
    config.timeout = PATIENCE;
    config.total_timeout = PATIENCE;
    config
}

pub(crate) async fn run(dir: &HookDir, task: &str) -> HookReport {
    tokio::time::timeout(PATIENCE, dir.run(HookCall::new().param("DO", task))).await.unwrap().unwrap()
}

/// The run of a single hook with this configuration.
pub(crate) async fn one(change: impl FnOnce(&mut HookDirConfig), call: HookCall) -> HookRun {
    let (main, files) = (main().await, dir(&["10-it"]));
    let mut config = config(&files);
    change(&mut config);
    let dir = main.hooks().open(config).unwrap();
    let mut report = tokio::time::timeout(PATIENCE, dir.run(call)).await.unwrap().unwrap();
    assert_eq!(report.runs.len(), 1);
    main.shutdown().await.unwrap();
    report.runs.remove(0)
}

pub(crate) async fn told(task: &str) -> HookOutcome {
    one(|_| {}, HookCall::new().param("DO", task)).await.outcome
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub(crate) fn names(report: &HookReport) -> Vec<&str> {
    report.runs.iter().map(|run| run.hook.as_str()).collect()
}

/// Blocks the thread where no event shows: for a hook to begin, a file to age.
#[expect(clippy::disallowed_methods, reason = "there is no event to wait for")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

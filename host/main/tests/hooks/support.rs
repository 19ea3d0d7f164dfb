//! Directories of hooks that do what they are told, and the Main that runs them.

use std::{fs, path::Path, sync::LazyLock, time::Duration};

use tempfile::TempDir;
use weir_host::{
    Builder, Config, Main, MainConfig,
    hooks::{HookCall, HookDir, HookDirConfig, HookOutcome, HookReport, HookRun},
};

/// Time enough for everything on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn main() -> Main {
    builder().start().await.unwrap()
}

/// A Main that compiles each component once for all tests.
pub(crate) fn builder() -> Builder {
    Main::builder(Config::new(main_config(), Vec::new()))
}

/// With the cache that all tests share.
pub(crate) fn main_config() -> MainConfig {
    static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    let mut config = MainConfig::default();
    config.cache_dir = Some(CACHE.path().to_owned());
    config
}

/// A directory with copies of the hook that does what it is told, under these names.
pub(crate) fn dir(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        put(dir.path(), name, "hook");
    }
    dir
}

/// Puts a guest into a directory, in the place of what has its name.
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

/// A run of a directory that is told the same for each of its hooks.
pub(crate) async fn run(dir: &HookDir, task: &str) -> HookReport {
    tokio::time::timeout(PATIENCE, dir.run(HookCall::new().param("DO", task))).await.unwrap().unwrap()
}

/// What came of the one hook of a directory that is configured so.
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

/// The same of one that is told to do something.
pub(crate) async fn told(task: &str) -> HookOutcome {
    one(|_| {}, HookCall::new().param("DO", task)).await.outcome
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub(crate) fn names(report: &HookReport) -> Vec<&str> {
    report.runs.iter().map(|run| run.hook.as_str()).collect()
}

/// Blocks the thread for what shows no event outside: a hook that has begun, a file that grows old.
#[expect(clippy::disallowed_methods, reason = "there is no event to wait for")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

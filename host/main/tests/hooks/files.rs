//! Hooks reach only what is granted, and nothing there can hold up their runner.

use std::{fs, path::Path, time::Duration};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use weir_host::{
    config::{DirGrant, DirMode},
    hooks::{HookCall, HookDirConfig, HookOutcome},
};

use super::support::*;

fn grant(config: &mut HookDirConfig, host: &Path, mode: DirMode) {
    config.grants.dirs.push(DirGrant { mode, ..DirGrant::read_only(host, "/data".parse().unwrap()) });
}

fn call(task: &str) -> HookCall {
    HookCall::new().param("DO", task)
}

#[tokio::test]
async fn a_hook_reads_and_writes_what_it_is_granted_and_nothing_else() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("a"), "12345").unwrap();
    let path = data.path();
    let with =
        |mode, task: &str| one(move |config: &mut HookDirConfig| grant(config, path, mode), call(task));
    assert_eq!(text(&with(DirMode::Ro, "open /data/a").await.stdout), "5");
    assert_eq!(with(DirMode::Ro, "write /data/b x").await.outcome, failed());
    assert_eq!(with(DirMode::Rw, "write /data/b xyz").await.outcome, HookOutcome::Ok);
    assert_eq!(fs::read_to_string(data.path().join("b")).unwrap(), "xyz");
    for file in ["/etc/passwd", "/data/../etc/passwd", "/data/link"] {
        std::os::unix::fs::symlink("/etc/passwd", data.path().join("link")).ok();
        assert_eq!(with(DirMode::Rw, &format!("open {file}")).await.outcome, failed(), "{file}");
    }
    assert_eq!(one(|_| {}, call("connect 127.0.0.1:1")).await.outcome, failed());
}

#[tokio::test]
async fn a_granted_directory_that_is_gone_is_a_system_error_with_its_path() {
    let run = one(|config| grant(config, Path::new("/nowhere/at/all"), DirMode::Ro), call("ok")).await;
    let HookOutcome::SystemError { reason, .. } = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(reason.contains("`/nowhere/at/all`"), "{reason}");
}

#[tokio::test]
async fn a_run_works_in_the_directory_that_lies_at_the_granted_path_when_it_begins() {
    let (main, files, data) = (main().await, dir(&["10-a", "20-b"]), tempfile::tempdir().unwrap());
    let (path, moved) = (data.path().join("it"), data.path().join("moved"));
    let mut config = config(&files);
    grant(&mut config, &path, DirMode::Rw);
    let dir = main.hooks().open(config).unwrap();
    let write = || async {
        let call = HookCall::new().param("DO_10", "write /data/a x").param("DO_20", "open /data/a");
        dir.run(call).await.unwrap()
    };
    fs::create_dir(&path).unwrap();
    assert_eq!(text(&write().await.runs[1].stdout), "1");
    fs::rename(&path, &moved).unwrap();
    fs::remove_file(moved.join("a")).unwrap();
    let report = write().await;
    assert!(matches!(report.runs[0].outcome, HookOutcome::SystemError { .. }), "{report:?}");
    fs::create_dir(&path).unwrap();
    assert!(write().await.is_success());
    assert!(path.join("a").exists() && !moved.join("a").exists());
}

/// To open it is to wait for its other end.
#[test]
fn a_fifo_in_a_granted_directory_holds_up_nobody() {
    let data = tempfile::tempdir().unwrap();
    mknodat(CWD, data.path().join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    std::os::unix::fs::symlink("fifo", data.path().join("link")).unwrap();
    let files = dir(&["10-a"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let main = runtime.block_on(main());
    let mut config = config(&files);
    config.timeout = Duration::from_secs(20);
    grant(&mut config, data.path(), DirMode::Rw);
    let dir = main.hooks().open(config).unwrap();
    for task in ["open /data/fifo", "write /data/fifo x", "open /data/link", "write /data/link x"] {
        let here = dir.run_blocking(call(task)).unwrap();
        assert_eq!(here.runs[0].outcome, failed(), "{task}");
        let there = runtime.block_on(run(&dir, task));
        assert_eq!(there.runs[0].outcome, failed(), "{task}");
    }
    drop(main);
}

#[test]
fn hooks_write_no_more_than_their_directory_may_hold() {
    let data = tempfile::tempdir().unwrap();
    let files = dir(&["10-a"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let main = runtime.block_on(main());
    let mut config = config(&files);
    let grant = DirGrant::read_write(data.path(), "/data".parse().unwrap());
    config.grants.dirs.push(DirGrant { max_bytes: Some(8192), ..grant });
    let dir = main.hooks().open(config).unwrap();
    let large = format!("write /data/a {}", "x".repeat(9000));
    let tasks =
        [("write /data/a x", HookOutcome::Ok), (&large, failed()), ("write /data/b x", HookOutcome::Ok)];
    for (task, outcome) in tasks.into_iter().chain([("write /data/c x", failed())]) {
        assert_eq!(dir.run_blocking(call(task)).unwrap().runs[0].outcome, outcome, "{task}");
        // On the worker, with the first run's files.
        assert_eq!(runtime.block_on(run(&dir, task)).runs[0].outcome, outcome, "{task}");
    }
    let bytes = |name| fs::metadata(data.path().join(name)).unwrap().len();
    assert!(bytes("a") <= 4096 && bytes("b") == 1 && !data.path().join("c").exists());
    drop(main);
}

#[tokio::test]
async fn open_files_are_bounded() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("a"), "1").unwrap();
    let run = one(|config| grant(config, data.path(), DirMode::Ro), call("descriptors /data/a")).await;
    assert_eq!(run.outcome, failed());
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(said.contains("os error 48"), "{said}");
}

fn failed() -> HookOutcome {
    HookOutcome::ScriptError { code: 1, is_reserved: false }
}

/// What [`test_guests::paths`] looks at.
fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    test_guests::paths::make(dir.path()).unwrap();
    dir
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_path_means_what_it_means_natively() {
    for is_counted in [false, true] {
        let (natively, data) = (tree(), tree());
        let path = data.path();
        let change = move |config: &mut HookDirConfig| {
            grant(config, path, DirMode::Rw);
            config.grants.dirs[0].max_files = is_counted.then_some(1000);
        };
        let run = one(change, call("paths /data")).await;
        assert_eq!(run.outcome, HookOutcome::Ok, "{:?}", run.stderr);
        let expected = test_guests::paths::outcomes(natively.path());
        let differs = |(native, ours): &(&str, &str)| {
            // A file of a counted directory has one name.
            native != ours && !(is_counted && native.starts_with("link "))
        };
        assert_eq!(expected.lines().count(), text(&run.stdout).lines().count());
        let pairs: Vec<_> = expected.lines().zip(text(&run.stdout).lines()).filter(differs).collect();
        assert!(pairs.is_empty(), "natively, and here: {pairs:#?}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_utf8_hides_no_other() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let data = tempfile::tempdir().unwrap();
    let path = data.path();
    for number in 0..600 {
        fs::write(path.join(format!("file-{number:03}")), "x").unwrap();
    }
    fs::write(path.join(OsStr::from_bytes(b"file-\xff")), "x").unwrap();
    let run = one(|config| grant(config, path, DirMode::Ro), call("list /data")).await;
    let listed: Vec<_> = text(&run.stdout).lines().collect();
    assert_eq!(listed.len(), 601);
    assert_eq!((listed[0], listed[599], listed[600]), ("file-000", "file-599", "file-\u{fffd}"));
}

//! What runs see of changes in the directory, the next run and the present one.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use rustix::fs::{Mode, OFlags};
use weir_host::{
    Config, Main, MainConfig,
    config::{DirGrant, DirMode},
    hooks::{HookCall, HookDir, HookDirConfig, HookError, HookOutcome, HookReport},
};

use super::support::*;

#[tokio::test]
async fn what_is_added_changed_and_removed_is_seen_by_the_next_run() {
    let (main, files) = (main().await, dir(&["10-a"]));
    let dir = main.hooks().open(config(&files)).unwrap();
    assert_eq!(names(&run(&dir, "ok").await), ["10-a.wasm"]);
    put(files.path(), "20-b", "hook");
    assert_eq!(names(&run(&dir, "ok").await), ["10-a.wasm", "20-b.wasm"]);
    put(files.path(), "20-b", "30-echo-hello");
    let report = dir.run(HookCall::new().param("NODE", "n1")).await.unwrap();
    assert!(text(&report.runs[1].stdout).contains("hello"), "{report:?}");
    fs::remove_file(files.path().join("10-a.wasm")).unwrap();
    assert_eq!(names(&run(&dir, "ok").await), ["20-b.wasm"]);
}

/// Two programs of equal length, file and modification time.
#[tokio::test]
async fn a_file_that_is_rewritten_within_one_tick_of_its_clock_is_not_taken_for_the_one_before() {
    let (main, files) = (main().await, dir(&[]));
    let path = files.path().join("10-it.wasm");
    let dir = main.hooks().open(config(&files)).unwrap();
    let (good, bad) = same_length();
    for _ in 0..20 {
        for (program, code) in [(&good, 0), (&bad, 7)] {
            fs::write(&path, program).unwrap();
            let expected = match code {
                0 => HookOutcome::Ok,
                code => HookOutcome::ScriptError { code, is_reserved: false },
            };
            assert_eq!(run(&dir, "ok").await.runs[0].outcome, expected);
        }
    }
}

#[tokio::test]
async fn an_old_file_is_loaded_once_and_again_when_it_has_changed() {
    let (main, files) = (main().await, dir(&["10-a"]));
    let path = files.path().join("10-a.wasm");
    let dir = main.hooks().open(config(&files)).unwrap();
    // The kernel's change time cannot be set back.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for _ in 0..3 {
        assert_eq!(run(&dir, "ok").await.runs[0].outcome, HookOutcome::Ok);
    }
    let length = fs::metadata(&path).unwrap().len();
    fs::write(&path, vec![0; usize::try_from(length).unwrap()]).unwrap();
    assert!(matches!(run(&dir, "ok").await.runs[0].outcome, HookOutcome::SystemError { .. }));
}

#[tokio::test]
async fn a_hook_that_is_replaced_while_it_runs_goes_on_as_it_was() {
    let (main, files) = (main().await, dir(&["10-a"]));
    let dir = main.hooks().open(config(&files)).unwrap();
    let (sleeping, replaced) = tokio::join!(run(&dir, "sleep 1"), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        fs::write(files.path().join("10-a.wasm"), "broken").unwrap();
    });
    let () = replaced;
    assert_eq!(sleeping.runs[0].outcome, HookOutcome::Ok);
    assert!(!run(&dir, "ok").await.is_success());
}

#[tokio::test]
async fn a_run_goes_on_with_the_files_that_it_began_with() {
    let (main, files, data) =
        (main().await, dir(&["10-a", "20-b", "30-c", "40-d"]), tempfile::tempdir().unwrap());
    let mut config = config(&files);
    let granted = DirGrant::read_only(data.path(), "/data".parse().unwrap());
    config.grants.dirs.push(DirGrant { mode: DirMode::Rw, ..granted });
    let dir = main.hooks().open(config).unwrap();
    let here = |name: &str| files.path().join(name);
    let call = HookCall::new().param("DO", "args").param("DO_10", "await /data/go");
    let run = async { tokio::time::timeout(PATIENCE, dir.run(call)).await.unwrap().unwrap() };
    let changes = async {
        while !data.path().join("go.waits").exists() {
            tokio::task::yield_now().await;
        }
        // Removed, put aside, replaced, written over, and added.
        fs::remove_file(here("20-b.wasm")).unwrap();
        fs::rename(here("30-c.wasm"), here(".30-c.wasm")).unwrap();
        put(files.path(), "40-d", "30-echo-hello");
        put(files.path(), "50-e", "hook");
        fs::write(data.path().join("go"), "").unwrap();
    };
    let (report, ()) = tokio::join!(run, changes);
    assert_eq!(names(&report), ["10-a.wasm", "20-b.wasm", "30-c.wasm", "40-d.wasm"]);
    assert!(report.is_success(), "{report:?}");
    assert_eq!(text(&report.runs[3].stdout), "40-d.wasm\n");
    assert_eq!(names(&run_of(&dir).await), ["10-a.wasm", "40-d.wasm", "50-e.wasm"]);
}

async fn run_of(dir: &HookDir) -> HookReport {
    dir.run(HookCall::new().param("DO", "ok").param("NODE", "n1")).await.unwrap()
}

#[tokio::test]
async fn a_broken_hook_is_an_error_of_that_run_with_its_name_and_ends_with_its_repair() {
    let (main, files) = (main().await, dir(&["10-a", "30-c"]));
    let dir = main.hooks().open(config(&files)).unwrap();
    let path = files.path().join("20-b.wasm");
    let reason_of = async |dir: &HookDir| {
        let report = run(dir, "ok").await;
        assert_eq!(names(&report), ["10-a.wasm", "20-b.wasm"]);
        match report.runs[1].outcome.clone() {
            HookOutcome::SystemError { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    };
    fs::write(&path, "#!/bin/sh\necho hello\n").unwrap();
    assert!(reason_of(&dir).await.contains("20-b.wasm` is not a WebAssembly component"));
    fs::write(&path, b"\0asm\x01\0\0\0").unwrap();
    assert!(reason_of(&dir).await.contains("20-b.wasm` is a core module"));
    fs::remove_file(&path).unwrap();
    symlink(files.path().join("10-a.wasm"), &path).unwrap();
    assert!(reason_of(&dir).await.contains("20-b.wasm` is not a regular file"));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(reason_of(&dir).await.contains("20-b.wasm` is not a regular file"));
    fs::remove_dir(&path).unwrap();
    fs::copy(test_guests::path("puppet"), &path).unwrap();
    let reason = reason_of(&dir).await;
    assert!(reason.contains("does not fit the world `wasi:cli/command`"), "{reason}");
    put(files.path(), "20-b", "hook");
    let report = run(&dir, "ok").await;
    assert!(report.is_success(), "{report:?}");
}

#[tokio::test]
async fn what_a_run_had_no_time_to_load_is_there_for_a_later_run() {
    // Without a cache, so that all is compiled.
    let mut main = MainConfig::default();
    main.cache_size = Some(0);
    let main = Main::builder(Config::new(main, Vec::new())).start().await.unwrap();
    let files = dir(&["10-a"]);
    put(files.path(), "20-b", "30-echo-hello");
    let dir = main.hooks().open(config(&files)).unwrap();
    // Less than the compiler needs.
    let call = HookCall::new().param("DO", "ok").param("NODE", "n1").timeout(Duration::from_millis(30));
    let (began, mut too_early) = (Instant::now(), 0);
    let report = loop {
        assert!(began.elapsed() < PATIENCE, "{too_early} runs came too early");
        match dir.run(call.clone()).await {
            Ok(report) if report.is_success() => break report,
            Ok(report) => {
                let last = report.runs.last().unwrap();
                assert!(matches!(last.outcome, HookOutcome::TimedOut { .. }), "{report:?}");
                too_early += 1;
            }
            // A busy machine had no time even to list them.
            Err(error) => assert!(matches!(error, HookError::TimedOut), "{error}"),
        }
    };
    assert_eq!(names(&report), ["10-a.wasm", "20-b.wasm"]);
    assert!(too_early > 0);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn other_suffixes_and_hidden_files_are_left_out() {
    let (main, files) = (main().await, dir(&["10-a", ".hidden"]));
    for name in ["20-b.wasm.disabled", "README.md", "30-c.sh", "wasm"] {
        fs::write(files.path().join(name), "no hook").unwrap();
    }
    let dir = main.hooks().open(config(&files)).unwrap();
    assert_eq!(names(&run(&dir, "ok").await), ["10-a.wasm"]);
    let mut config = config(&files);
    config.suffixes = vec!["-a.wasm".to_owned(), ".hook".to_owned()];
    fs::copy(test_guests::path("hook"), files.path().join("40.hook")).unwrap();
    let dir = main.hooks().open(config).unwrap();
    assert_eq!(names(&dir.run(HookCall::new()).await.unwrap()), ["10-a.wasm", "40.hook"]);
}

#[tokio::test]
async fn what_is_said_of_a_hook_is_one_harmless_line_whatever_its_name() {
    let (main, files) = (main().await, dir(&[]));
    fs::write(files.path().join("10-a\n\x1b[2J.wasm"), "no hook").unwrap();
    let dir = main.hooks().open(config(&files)).unwrap();
    let HookOutcome::SystemError { reason, .. } = run(&dir, "ok").await.runs.remove(0).outcome else {
        panic!()
    };
    assert!(!reason.contains(char::is_control), "{reason:?}");
}

/// As in a directory that Main may read and not search.
#[tokio::test]
async fn a_hook_that_cannot_be_looked_at_is_not_left_out_in_silence() {
    let (main, files) = (main().await, dir(&[]));
    let mut deep = files.path().to_owned();
    while deep.as_os_str().len() < 3850 {
        deep.push("d".repeat(100));
    }
    fs::create_dir_all(&deep).unwrap();
    let name = format!("{}.wasm", "a".repeat(250));
    let at = rustix::fs::open(&deep, OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
    let file = rustix::fs::openat(&at, &name, OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
    let hook = fs::read(test_guests::path("hook")).unwrap();
    std::io::Write::write_all(&mut fs::File::from(file), &hook).unwrap();
    let dir = main.hooks().open(HookDirConfig::new(&deep)).unwrap();
    let report = dir.run(HookCall::new()).await;
    assert!(!report.as_ref().is_ok_and(|report| report.runs.is_empty()), "{report:?}");
}

/// Components of equal length: one succeeds, one exits with 7.
fn same_length() -> (Vec<u8>, Vec<u8>) {
    let component = |body: &str| {
        wat::parse_str(format!(
            r#"(component
                (import "wasi:cli/exit@0.2.12" (instance $exit (export "exit-with-code" (func (param "status-code" u8)))))
                (core func $exit (canon lower (func $exit "exit-with-code")))
                (core module $m
                    (import "e" "x" (func $exit (param i32)))
                    (func (export "run") (result i32) {body} i32.const 0))
                (core instance $i (instantiate $m (with "e" (instance (export "x" (func $exit))))))
                (func $run (result (result)) (canon lift (core func $i "run")))
                (instance $run (export "run" (func $run)))
                (export "wasi:cli/run@0.2.12" (instance $run)))"#
        ))
        .unwrap()
    };
    let (good, bad) = (component("i32.const 0 call $exit"), component("i32.const 7 call $exit"));
    assert_eq!(good.len(), bad.len());
    (good, bad)
}

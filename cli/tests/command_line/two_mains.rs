//! Two Mains, and the files that only one may write.

use std::{fs, os::unix::fs::MetadataExt, process::Stdio};

use rustix::process::Signal;

#[cfg(feature = "store")]
use super::support::Killed;
use super::support::{Running, done, until, weir, with_own_component};

const WRITER: &str = "[[extension]]\nid = 'puppet'\npath = 'puppet.wasm'\nfulfills = ['puppet@1']\n\
     restart = { backoff = '10ms', max-backoff = '100ms', failures = 1 }\n\
     grants.dirs = [{ host = 'data', guest = '/data', mode = 'rw' }]\n";

/// A Main in the other's directory, with its own socket and file.
fn second(first: &Running, file: &str) -> std::process::Command {
    let mut command = weir(first.path());
    command.args(["run", file, "--socket", "second.sock"]).stderr(Stdio::piped());
    command
}

/// Keeps what it is told in a store.
#[cfg(feature = "store")]
const KEEPER: &str = "[main]\ndata-dir = 'data'\n[store.kept]\n\
     [[extension]]\nid = 'storage'\npath = 'storage.wasm'\nfulfills = ['local.storage@1']\n\
     grants.stores = ['kept']\nconfig.store = 'kept'\n\
     restart = { backoff = '10ms', max-backoff = '100ms', failures = 1 }\n";

fn with_data() -> Running {
    let dir = with_own_component(WRITER);
    fs::create_dir(dir.path().join("data")).unwrap();
    Running::start(dir)
}

#[test]
fn a_second_main_on_the_same_file_is_refused_also_after_a_reload_of_another() {
    let main = with_data();
    let refusal = || {
        let refused = done(&mut second(&main, "weir.toml"));
        assert_eq!(refused.code, 1);
        let owner = format!(
            "error: another Main runs by `weir.toml`: it is in use by process {} (`weir`)",
            main.pid()
        );
        assert!(refused.stderr.lines().last().unwrap().ends_with(&owner), "{}", refused.stderr);
    };
    refusal();

    let file = main.path().join("weir.toml");
    fs::write(file.with_extension("new"), format!("# edited\n{WRITER}")).unwrap();
    fs::rename(file.with_extension("new"), &file).unwrap();
    main.weir(&["reload"]).good();
    let locked = format!(":{} 0 EOF", fs::metadata(&file).unwrap().ino());
    until("the new file is locked", || {
        fs::read_to_string("/proc/locks").unwrap().contains(&locked).then_some(())
    });
    refusal();
}

#[test]
fn a_directory_that_another_main_writes_to_is_waited_for_and_its_owner_named() {
    let first = with_data();
    fs::write(first.path().join("other.toml"), WRITER).unwrap();
    let mut other = second(&first, "other.toml").spawn().unwrap();
    let ask = |args: &[&str]| done(weir(first.path()).args(args).args(["--socket", "second.sock"]));
    let status = || ask(&["status", "--json", "puppet"]);
    let failure = until("it fails", || {
        let status: serde_json::Value = serde_json::from_str(&status().stdout).ok()?;
        Some(status["failures"][0]["cause"].as_str()?.to_owned())
    });
    assert!(failure.contains("cannot lock granted directory `"), "{failure}");
    let owner = format!("it is in use by process {} (`weir`)", first.pid());
    assert!(failure.ends_with(&owner), "{failure}");
    assert_eq!(first.weir(&["call", "puppet@1", "run", "--raw", "own-name"]).good(), "puppet");

    // The second takes over only after the first has ended.
    first.signal(Signal::TERM);
    until("it takes over", || {
        let answer = ask(&["call", "puppet@1", "run", "--raw", "own-name"]);
        (answer.code == 0).then_some(())
    });
    other.kill().unwrap();
    other.wait().unwrap();
}

#[cfg(feature = "store")]
#[test]
fn a_store_that_another_main_has_is_waited_for_until_that_main_ends() {
    let dir = with_own_component(KEEPER);
    fs::copy(test_guests::path("storage"), dir.path().join("storage.wasm")).unwrap();
    let first = Running::start(dir);
    first.weir(&["call", "local.storage@1", "set", "{\"key\":\"a\",\"value\":7}"]).good();
    fs::write(first.path().join("other.toml"), KEEPER).unwrap();
    let _other = Killed(second(&first, "other.toml").spawn().unwrap());
    let ask = |args: &[&str]| done(weir(first.path()).args(args).args(["--socket", "second.sock"]));
    let status = || serde_json::from_str::<serde_json::Value>(&ask(&["status", "--json", "storage"]).stdout);
    let late = until("it has failed twice", || {
        let status = status().ok()?;
        assert_ne!(status["state"], "quarantined", "{status}");
        (!status["failures"][1].is_null()).then_some(status)
    });
    let cause = late["failures"][1]["cause"].as_str().unwrap();
    assert!(cause.starts_with("cannot start: store `kept`: "), "{late}");
    assert!(cause.ends_with(" is in use by another process: only one can have it"), "{late}");

    // Nobody restarts it.
    first.signal(Signal::TERM);
    let found = until("it takes over", || {
        let answer = ask(&["call", "local.storage@1", "get", "{\"key\":\"a\"}"]);
        (answer.code == 0).then_some(answer.stdout)
    });
    assert_eq!(found.trim(), "{\"value\":7}");
    let asked = ask(&["history", "--json", "storage"]).good();
    assert!(!asked.contains("\"asked\"") && !asked.contains("quarantined"), "{asked}");
}

//! An extension sees what was granted of the machine, and nothing else.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::{Mutex, mpsc},
    time::Duration,
};

use weir_host::{
    Service,
    config::{DirGrant, NetGrant, RestartPolicy},
    control::ExtensionState,
};

use super::support::{PATIENCE, config, puppet, puppet_with, reached, start, tell};

#[tokio::test]
async fn a_directory_granted_read_only_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "text").unwrap();
    let grant = DirGrant::read_only(dir.path(), "/data".parse().unwrap());
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = vec![grant])]).await;
    assert_eq!(tell(&main, "a", "read /data/file").await.unwrap(), "text");
    for path in ["/data/file", "/data/new"] {
        assert!(tell(&main, "a", &format!("write {path} changed")).await.is_err());
    }
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "text");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_directory_granted_for_writing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let grant = DirGrant::read_write(dir.path(), "/data".parse().unwrap());
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = vec![grant])]).await;
    tell(&main, "a", "write /data/file new").await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "new");
}

#[tokio::test]
async fn nothing_leads_out_of_a_granted_directory() {
    let dir = tempfile::tempdir().unwrap();
    let granted = dir.path().join("granted");
    fs::create_dir(&granted).unwrap();
    fs::write(dir.path().join("secret"), "secret").unwrap();
    symlink("../secret", granted.join("link")).unwrap();
    symlink(dir.path().join("secret"), granted.join("absolute-link")).unwrap();
    symlink("..", granted.join("up")).unwrap();
    let grant = DirGrant::read_write(&granted, "/data".parse().unwrap());
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = vec![grant])]).await;
    for path in [
        "/data/../secret",
        "/data/link",
        "/data/absolute-link",
        "/data/up/secret",
        "/secret",
        "/etc/hostname",
    ] {
        assert!(tell(&main, "a", &format!("read {path}")).await.is_err(), "{path}");
        assert!(tell(&main, "a", &format!("write {path} x")).await.is_err(), "{path}");
    }
    assert!(tell(&main, "a", "list /").await.is_err());
    assert_eq!(fs::read_to_string(dir.path().join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_path_means_to_an_extension_what_it_means_natively() {
    let (natively, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for dir in [&natively, &data] {
        test_guests::paths::make(dir.path()).unwrap();
    }
    let grant = DirGrant::read_write(data.path(), "/data".parse().unwrap());
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = vec![grant])]).await;
    let ours = tell(&main, "a", "paths /data").await.unwrap();
    let ours: Vec<_> = ours.lines().collect();
    for line in [
        "lstat l/: directory",
        "lstat f/: NotADirectory",
        "lstat dangling/: NotFound",
        "rmdir f/: NotADirectory",
        "rmdir m/: ok",
    ] {
        assert!(ours.contains(&line), "{line}: {ours:#?}");
    }
    let expected = test_guests::paths::outcomes(natively.path());
    let expected: Vec<_> = expected.lines().collect();
    assert_eq!(expected.len(), ours.len());
    let pairs: Vec<_> = expected.iter().zip(&ours).filter(|(native, ours)| native != ours).collect();
    assert!(pairs.is_empty(), "natively, and here: {pairs:#?}");
}

#[tokio::test]
async fn an_extension_without_grants_finds_nothing() {
    let main = start(vec![puppet("a")]).await;
    assert_eq!(tell(&main, "a", "env").await.unwrap(), "[]");
    assert_eq!(tell(&main, "a", "args").await.unwrap(), "[\"a\"]");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for command in ["list /", "read /proc/self/environ", "write /tmp/x y"] {
        assert!(tell(&main, "a", command).await.is_err(), "{command}");
    }
    assert!(tell(&main, "a", &format!("connect {}", listener.local_addr().unwrap())).await.is_err());
}

#[tokio::test]
async fn only_the_granted_variables_and_addresses_are_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (granted, other) = (listener.local_addr().unwrap(), other.local_addr().unwrap());
    let puppet = puppet_with("a", |a| {
        a.grants.env.insert("NAME".to_owned(), "value".to_owned());
        a.grants.net = vec![granted.to_string().parse::<NetGrant>().unwrap()];
    });
    let main = start(vec![puppet]).await;
    assert_eq!(tell(&main, "a", "env").await.unwrap(), "[(\"NAME\", \"value\")]");
    assert_eq!(tell(&main, "a", &format!("connect {granted}")).await.unwrap(), "connected");
    assert!(tell(&main, "a", &format!("connect {other}")).await.is_err());
}

/// As on a file system that hangs: no thread is left to open them.
#[tokio::test]
async fn directories_that_are_not_opened_end_with_the_ready_deadline_and_hold_up_no_stop() {
    let dir = tempfile::tempdir().unwrap();
    let granted = |id: &str| {
        puppet_with(id, |granted| {
            granted.grants.dirs = vec![DirGrant::read_only(dir.path(), "/data".parse().unwrap())];
            granted.restart.policy = RestartPolicy::OnFailure;
            (granted.restart.backoff, granted.restart.max_backoff) =
                (Duration::from_millis(1), Duration::from_millis(1));
            // The failed start must not count, only the trap.
            granted.restart.failures = 2;
        })
    };
    let mut late = granted("late");
    late.limits.ready_timeout = Duration::from_secs(1);
    let (release, released) = mpsc::channel::<()>();
    let (taken, takes) = async_channel::bounded(1);
    let released = Mutex::new(released);
    let hold = Service::new("hold@1".parse().unwrap()).on_blocking("on".parse().unwrap(), move |request| {
        taken.send_blocking(()).unwrap();
        // At the latest when the test ends.
        let _end = released.lock().unwrap().recv();
        Ok(request.payload)
    });
    let mut config = config(vec![late, granted("patient")]);
    config.main.blocking_threads = 1;
    let main = weir_host::Main::builder(config).serve(hold).start().await.unwrap();
    for id in ["late", "patient"] {
        reached(&main, id, ExtensionState::Ready).await;
    }
    let client = main.client().clone();
    let held = tokio::spawn(async move { client.call("hold@1", "on", "").await });
    takes.recv().await.unwrap();

    // With the program loaded, the next instances need a thread only for directories.
    for id in ["late", "patient"] {
        assert_eq!(tell(&main, id, "trap").await, Err("Trapped".to_owned()));
    }
    let cause = "cannot start: its granted directories or stores, or its secrets could not be opened: not ready within `ready-timeout` of 1s";
    let is_late = || {
        let failures = main.control().status("late").unwrap().failures;
        failures.iter().filter(|failure| failure.cause == cause).count() > 2
    };
    let mut events = main.control().events();
    while !is_late() {
        events.next().await.unwrap();
    }
    reached(&main, "patient", ExtensionState::Starting).await;
    for id in ["late", "patient"] {
        tokio::time::timeout(PATIENCE / 2, main.control().stop(id)).await.unwrap().unwrap();
        assert_eq!(main.control().status(id).unwrap().state, ExtensionState::Stopped);
    }
    tokio::time::timeout(PATIENCE / 2, main.shutdown()).await.unwrap().unwrap();
    assert!(held.await.unwrap().is_err());
    drop(release);
}

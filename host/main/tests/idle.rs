//! An extension waiting for its inbox, a socket and a far timer costs nothing. Alone in its process, because it
//! watches the worker thread.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_host::{Config, ExtensionConfig, Main, MainConfig, config::UpdateConfig, control::ExtensionState};

fn tasks() -> impl Iterator<Item = (String, PathBuf)> {
    fs::read_dir("/proc/self/task").unwrap().filter_map(|task| {
        let path = task.unwrap().path();
        Some((fs::read_to_string(path.join("comm")).ok()?.trim().to_owned(), path))
    })
}

/// Context switches and ticks of processor time of a thread.
fn activity(task: &Path) -> Vec<String> {
    let status = fs::read_to_string(task.join("status")).unwrap();
    let stat = fs::read_to_string(task.join("stat")).unwrap();
    let switches = status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned);
    // `utime` and `stime`, the 14th and 15th field.
    switches.chain(stat.split(' ').skip(13).take(2).map(str::to_owned)).collect()
}

#[tokio::test]
async fn message_socket_and_stop_each_wake_a_poll_that_else_makes_no_wakeup() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut poller = ExtensionConfig::new("poller".parse().unwrap(), test_guests::path("poller"));
    // On probation, and without requests for long.
    let mut update = UpdateConfig::default();
    update.prove_for = Duration::from_secs(7 * 86_400);
    poller.update = Some(update);
    poller.limits.ready_timeout = Duration::from_secs(120);
    poller.fulfills = vec!["poller@1".parse().unwrap()];
    poller.publishes = vec!["woken.>".parse().unwrap()];
    poller.grants.net = vec![address.parse().unwrap()];
    poller.config.insert("address".to_owned(), address);
    let main = Main::builder(Config::new(MainConfig::default(), vec![poller])).start().await.unwrap();
    assert_eq!(main.control().status("poller").unwrap().state, ExtensionState::Ready);
    let (mut connection, _) = listener.accept().unwrap();
    let mut woken = main.client().subscribe("woken.>").unwrap();

    // Idle pool threads end after 10 s; each end wakes the worker.
    let mut tick = tokio::time::interval(Duration::from_millis(250));
    while tasks().any(|(name, _)| name == "weir-blocking") {
        tick.tick().await;
    }
    let (_, worker) = tasks().find(|(name, _)| name == "weir-main").unwrap();
    let before = activity(&worker);
    // Not a wait for anything: the time over which nothing may happen.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(activity(&worker), before);

    assert_eq!(main.client().call("poller@1", "ask", "message").await.unwrap(), "message");
    connection.write_all(b"data").unwrap();
    let event = woken.next().await.unwrap();
    assert_eq!((event.topic.as_str(), &*event.payload), ("woken.socket", &b"data"[..]));
    assert_eq!(main.client().call("poller@1", "ask", "again").await.unwrap(), "again");
    main.control().stop("poller").await.unwrap();
    assert_eq!(woken.next().await.unwrap().topic.as_str(), "woken.stop");
    assert_eq!(main.control().status("poller").unwrap().state, ExtensionState::Stopped);
    assert_eq!(main.client().waiters(), 0);
}

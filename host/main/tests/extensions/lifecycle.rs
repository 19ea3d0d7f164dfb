//! Stop and restart: what ends with an instance, and what outlives it.

use std::{
    fs,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tempfile::TempDir;
use tokio::time::timeout;
use weir_host::{
    Error, ExtensionConfig, Main,
    client::PutOptions,
    config::{ComponentSource, DirGrant, QueueConfig},
    control::{ControlError, ExtensionState, ExtensionStatus},
    events::MainEvent,
};

use super::support::{
    Gate, PATIENCE, builder, config, extension, puppet, puppet_with, reached, set, start, states, taken,
    tell, until,
};

#[tokio::test]
async fn a_stopped_extension_is_no_provider_until_it_is_started_again() {
    let main = start(vec![puppet("a")]).await;
    main.control().stop("a").await.unwrap();
    main.control().stop("a").await.unwrap();
    assert_eq!(
        main.client().call("a@1", "run", "echo").await,
        Err(Error::NoProvider("`a` is not running".to_owned()))
    );
    main.control().start("a").await.unwrap();
    main.control().start("a").await.unwrap();
    assert_eq!(tell(&main, "a", "echo 1").await.unwrap(), "1");
    assert_eq!(main.control().status("a").unwrap().restarts, 1);
    assert!(main.control().start("b").await.is_err());
}

#[tokio::test]
async fn an_operation_that_was_looked_up_once_holds_across_instances() {
    let main = start(vec![puppet("a")]).await;
    let operation = main.client().operation("a@1", "run").unwrap();
    assert_eq!(operation.call("echo 1").await.unwrap(), "1");
    main.control().stop("a").await.unwrap();
    assert!(matches!(operation.call("echo 2").await, Err(Error::NoProvider(_))));
    main.control().start("a").await.unwrap();
    assert_eq!(operation.call("echo 3").await.unwrap(), "3");
}

#[tokio::test]
async fn subscriptions_outlive_a_trap_and_end_with_a_stop() {
    let puppet = puppet_with("a", |a| a.subscribes = vec!["t".parse().unwrap()]);
    let main = start(vec![puppet]).await;
    let number = tell(&main, "a", "subscribe t").await.unwrap();
    assert_eq!(tell(&main, "a", "trap").await, Err("Trapped".to_owned()));
    reached(&main, "a", ExtensionState::Failed).await;
    assert_eq!(main.client().publish("t", "while it was down").await.unwrap().delivered, 1);
    main.control().start("a").await.unwrap();
    assert_eq!(tell(&main, "a", "subscribe t").await.unwrap(), number);
    taken(&main, "a").await;
    assert_eq!(tell(&main, "a", "heard").await.unwrap(), "event:  1 0 while it was down");

    main.control().stop("a").await.unwrap();
    assert_eq!(main.client().publish("t", "nobody hears").await.unwrap().delivered, 0);
    main.control().start("a").await.unwrap();
    assert_ne!(tell(&main, "a", "subscribe t").await.unwrap(), number);
    assert_eq!(tell(&main, "a", "heard").await.unwrap(), "");
}

#[tokio::test]
async fn requests_wait_for_an_extension_that_is_starting() {
    let gate = Gate::new();
    let slow = puppet_with("a", |a| {
        a.wants = vec!["gate@1".parse().unwrap()];
        a.autostart = false;
        set(a, "start", "call gate@1 pass");
    });
    let main = gate.start(vec![slow]).await;
    let starting = main.control().start("a");
    let asking = async {
        reached(&main, "a", ExtensionState::Starting).await;
        let ask = tell(&main, "a", "echo waited");
        let open = async { gate.open(1) };
        tokio::join!(ask, open).0
    };
    let (started, asked) = tokio::join!(starting, asking);
    started.unwrap();
    assert_eq!(asked.unwrap(), "waited");
}

#[tokio::test]
async fn whoever_waits_for_one_that_is_stopped_hears_it_before_its_end() {
    let gate = Gate::new();
    let slow = puppet_with("a", |a| a.wants = vec!["gate@1".parse().unwrap()]);
    let main = gate.start(vec![slow]).await;
    let (client, control) = (main.client().clone(), main.control().clone());
    let in_hand = tokio::spawn(async move { client.call("a@1", "run", "call gate@1 pass on").await });
    while control.status("a").unwrap().received == 0 {
        tokio::task::yield_now().await;
    }
    let client = main.client().clone();
    let waits = tokio::spawn(async move { client.call("a@1", "run", "echo").await });
    while control.status("a").unwrap().inbox_messages == 0 {
        tokio::task::yield_now().await;
    }
    let mut stop = Box::pin(control.stop("a"));
    assert!(stop.as_mut().now_or_never().is_none());
    assert_eq!(waits.await.unwrap(), Err(Error::PeerGone));
    assert!(stop.as_mut().now_or_never().is_none());
    gate.open(1);
    assert_eq!(in_hand.await.unwrap().unwrap(), "on");
    stop.await.unwrap();
}

#[tokio::test]
async fn an_interrupted_extension_refuses_until_it_is_ready_again() {
    let puppet = puppet_with("a", |a| a.subscribes = vec!["t".parse().unwrap()]);
    let main = start(vec![puppet]).await;
    tell(&main, "a", "interrupted no network").await.unwrap();
    assert_eq!(reached(&main, "a", ExtensionState::Interrupted).await.as_deref(), Some("no network"));
    assert_eq!(
        main.client().call("a@1", "run", "ready").await,
        Err(Error::NotReady("`a` is interrupted: no network".to_owned()))
    );
    main.control().stop("a").await.unwrap();
    main.control().start("a").await.unwrap();
    assert_eq!(tell(&main, "a", "echo 1").await.unwrap(), "1");
}

#[tokio::test]
async fn an_extension_that_says_why_it_fails_is_quoted_harmlessly() {
    let puppet = puppet_with("a", |a| set(a, "start", "error no\n\x1b[31mdata"));
    let main = start(vec![puppet]).await;
    let status = main.control().status("a").unwrap();
    assert_eq!(status.state, ExtensionState::Failed);
    assert_eq!(status.reason.as_deref(), Some("no\\n\\u{1b}[31mdata"));
}

/// Ends, by its task. If it waits for a file, it is ready before.
fn brief(data: &TempDir, task: &str) -> ExtensionConfig {
    let mut brief = extension("a", "hook");
    brief.autostart = false;
    brief.grants.env.insert("DO".to_owned(), task.to_owned());
    brief.grants.dirs.push(DirGrant::read_write(data.path(), "/data".parse().unwrap()));
    brief
}

async fn run_brief(main: &Main) -> ExtensionStatus {
    let started = main.control().start("a").await;
    assert!(matches!(started, Ok(()) | Err(ControlError::NotStarted { .. })), "{started:?}");
    let state = || main.control().status("a").unwrap().state;
    until(|| matches!(state(), ExtensionState::Stopped | ExtensionState::Failed)).await;
    main.control().status("a").unwrap()
}

#[tokio::test]
async fn one_that_ends_by_itself_each_time_is_held_to_its_limits_each_time() {
    let data = tempfile::tempdir().unwrap();
    let file = fs::File::create(data.path().join("file")).unwrap();
    let brief = brief(&data, "open /data/file");
    let memory = brief.limits.memory;
    let main = start(vec![brief]).await;
    for _ in 0..5 {
        assert_eq!(run_brief(&main).await.state, ExtensionState::Stopped);
    }
    // Expected to be as brief, and it is not.
    file.set_len(memory).unwrap();
    for _ in 0..2 {
        let status = run_brief(&main).await;
        assert_eq!((status.state, status.memory), (ExtensionState::Failed, 0));
    }
    file.set_len(0).unwrap();
    assert_eq!(run_brief(&main).await.state, ExtensionState::Stopped);
}

#[tokio::test]
async fn one_that_ends_by_itself_each_time_is_started_from_what_is_in_its_file() {
    let data = tempfile::tempdir().unwrap();
    let (path, copy) = (data.path().join("a.wasm"), data.path().join("b.wasm"));
    let mut brief = brief(&data, "ok");
    fs::copy(brief.component.path().unwrap(), &path).unwrap();
    brief.component = ComponentSource::Path(path.clone());
    let main = start(vec![brief]).await;
    for _ in 0..3 {
        assert_eq!(run_brief(&main).await.state, ExtensionState::Stopped);
    }
    fs::rename(&path, &copy).unwrap();
    fs::write(&path, "no program").unwrap();
    assert_eq!(run_brief(&main).await.state, ExtensionState::Failed);
    fs::rename(&copy, &path).unwrap();
    assert_eq!(run_brief(&main).await.state, ExtensionState::Stopped);
}

#[tokio::test]
async fn a_main_that_is_dropped_ends_and_its_handles_say_so() {
    let mut config = config(vec![puppet("a")]);
    config.queues.insert("q".parse().unwrap(), QueueConfig::default());
    let main = Main::builder(config).start().await.unwrap();
    let (client, control) = (main.client().clone(), main.control().clone());
    let (operation, queue) = (client.operation("a@1", "run").unwrap(), client.queue("q").unwrap());
    drop(main);
    control.ended().await;
    assert_eq!(client.call("a@1", "run", "echo").await, Err(Error::Ended));
    assert_eq!(operation.call("echo").await, Err(Error::Ended));
    assert_eq!(client.publish("t", "").await, Err(Error::Ended));
    assert_eq!(client.publish_to("a", "t", "").await, Err(Error::Ended));
    assert_eq!(client.subscribe("t").unwrap_err(), Error::Ended);
    assert_eq!(client.queue("q").unwrap_err(), Error::Ended);
    assert_eq!(queue.put("").await, Err(Error::Ended));
    assert_eq!(queue.put_until_done("", PutOptions::default()).await, Err(Error::Ended));
    assert!(control.start("a").await.is_err());
    assert_eq!(client.waiters(), 0);
}

/// A puppet that works on until a long deadline when it should start or stop.
fn stubborn(at: &str) -> ExtensionConfig {
    puppet_with("stubborn", |p| {
        p.limits.fuel_to_start = 1_000_000_000_000;
        set(p, at, "spin");
    })
}

#[tokio::test]
async fn a_start_and_a_shutdown_that_are_given_up_return_at_once() {
    let begun = Instant::now();
    let soon = Duration::from_millis(50);
    assert!(timeout(soon, builder(vec![stubborn("start")]).start()).await.is_err());
    let main = start(vec![stubborn("stop")]).await;
    let mut events = main.control().events();
    assert!(timeout(soon, main.shutdown()).await.is_err());
    // It goes on by itself.
    while events.next().await.unwrap() != MainEvent::Stopping {}
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn streams_end_with_main_though_its_handles_live_on() {
    let main = start(vec![puppet("a")]).await;
    let (client, control) = (main.client().clone(), main.control().clone());
    let (_, mut lines) = control.follow_logs();
    let seen = tokio::spawn(states(control.events()));
    main.shutdown().await.unwrap();
    assert_eq!(
        seen.await.unwrap(),
        [("a".to_owned(), ExtensionState::Draining), ("a".to_owned(), ExtensionState::Stopped)]
    );
    assert!(lines.next().await.is_none());
    drop((client, control));
}

#[tokio::test]
async fn main_says_once_that_it_stops_and_answers_a_ping_until_it_has() {
    let gate = Gate::new();
    let slow = puppet_with("a", |a| {
        a.wants = vec!["gate@1".parse().unwrap()];
        set(a, "stop", "call gate@1 pass");
    });
    let main = gate.start(vec![slow, puppet("b")]).await;
    let control = main.control().clone();
    control.ping().await.unwrap();
    let mut events = control.events();
    control.begin_shutdown().await;
    assert_eq!(events.next().await, Some(MainEvent::Stopping));
    reached(&main, "b", ExtensionState::Stopped).await;
    control.ping().await.unwrap();
    gate.open(1);
    main.shutdown().await.unwrap();
    assert_eq!(control.ping().await, Err(ControlError::ShuttingDown));
    while let Some(event) = events.next().await {
        assert_ne!(event, MainEvent::Stopping);
    }
}

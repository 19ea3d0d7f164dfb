//! `requires` orders starts and stops; `wants` does not.

use std::time::Duration;

use weir_host::{
    ExtensionConfig,
    config::RestartPolicy,
    control::{ControlError, ExtensionState},
};

use super::support::{Gate, config, puppet, puppet_with, reached, set, start, states, tell};

/// `a` requires `b`, which requires `c`; none starts by itself.
fn chain(change: impl FnOnce(&mut ExtensionConfig)) -> Vec<ExtensionConfig> {
    let requires = |id: &str, contract: &str| {
        puppet_with(id, |p| {
            p.requires = vec![contract.parse().unwrap()];
            p.autostart = false;
        })
    };
    let c = puppet_with("c", |c| {
        c.autostart = false;
        change(c);
    });
    vec![requires("a", "b@1"), requires("b", "c@1"), c]
}

#[tokio::test]
async fn what_is_required_is_ready_before_and_stops_after() {
    let main = start(chain(|_| {})).await;
    let events = main.control().events();
    main.control().start("a").await.unwrap();
    main.shutdown().await.unwrap();
    let came = states(events).await;
    let came: Vec<_> = came.iter().map(|(id, state)| (&**id, *state)).collect();
    use ExtensionState::{Draining, Ready, Starting, Stopped};
    assert_eq!(
        came,
        [
            ("c", Starting),
            ("c", Ready),
            ("b", Starting),
            ("b", Ready),
            ("a", Starting),
            ("a", Ready),
            ("a", Draining),
            ("a", Stopped),
            ("b", Draining),
            ("b", Stopped),
            ("c", Draining),
            ("c", Stopped),
        ]
    );
}

#[tokio::test]
async fn whoever_requires_what_fails_fails_with_it_and_says_why() {
    let main = start(chain(|c| set(c, "start", "error no disk"))).await;
    let error = main.control().start("a").await.unwrap_err();
    assert_eq!(error.to_string(), "`a` did not start: it requires `b@1`, and `b` does not run");
    let why = |id: &str| {
        let status = main.control().status(id).unwrap();
        assert_eq!(status.state, ExtensionState::Failed);
        status.reason.unwrap()
    };
    assert_eq!(why("b"), "it requires `c@1`, and `c` does not run");
    assert_eq!(why("c"), "no disk");
}

#[tokio::test]
async fn main_starts_although_an_extension_fails() {
    let mut extensions = chain(|c| set(c, "start", "trap"));
    extensions.iter_mut().for_each(|extension| extension.autostart = true);
    extensions.push(puppet("other"));
    let main = start(extensions).await;
    assert_eq!(tell(&main, "other", "echo 1").await.unwrap(), "1");
    assert_eq!(main.control().status("a").unwrap().state, ExtensionState::Failed);
}

#[tokio::test]
async fn wants_neither_orders_nor_refuses() {
    let wants = |id: &str, contract: &str| puppet_with(id, |p| p.wants = vec![contract.parse().unwrap()]);
    let main = start(vec![wants("a", "b@1"), wants("b", "a@1"), wants("c", "nobody@1")]).await;
    assert_eq!(tell(&main, "a", "call b@1 run echo 1").await.unwrap(), "1");
    assert_eq!(tell(&main, "b", "call a@1 run echo 2").await.unwrap(), "2");
    assert_eq!(
        tell(&main, "c", "call nobody@1 run").await,
        Err("Error::UnknownContract(\"nobody@1\")".to_owned())
    );
}

#[tokio::test]
async fn stopping_what_a_start_waits_for_ends_that_start() {
    let gate = Gate::new();
    let extensions = chain(|c| {
        c.wants = vec!["gate@1".parse().unwrap()];
        set(c, "start", "call gate@1 pass");
    });
    let main = gate.start(extensions).await;
    let stop = async {
        reached(&main, "c", ExtensionState::Starting).await;
        main.control().stop("b").await.unwrap();
        gate.open(1);
    };
    let (started, ()) = tokio::join!(main.control().start("a"), stop);
    let Err(ControlError::NotStarted { id, .. }) = started else { panic!("{started:?}") };
    assert_eq!(id.as_str(), "a");
    reached(&main, "c", ExtensionState::Ready).await;
    assert_ne!(main.control().status("b").unwrap().state, ExtensionState::Ready);
}

#[tokio::test]
async fn a_start_that_is_under_way_is_told_of_the_shutdown() {
    let gate = Gate::new();
    let extensions = chain(|c| {
        c.wants = vec!["gate@1".parse().unwrap()];
        set(c, "start", "call gate@1 pass");
    });
    let main = gate.start(extensions).await;
    let control = main.control().clone();
    let starting = tokio::spawn(async move { control.start("a").await });
    reached(&main, "c", ExtensionState::Starting).await;
    gate.open(1);
    main.shutdown().await.unwrap();
    assert!(matches!(starting.await.unwrap(), Ok(()) | Err(_)), "it ended");
}

#[tokio::test]
async fn what_a_reload_removes_and_does_not_run_is_stopped_before_what_wants_it() {
    let user = puppet_with("user", |user| user.wants = vec!["broken@1".parse().unwrap()]);
    let broken = puppet_with("broken", |broken| {
        set(broken, "start", "trap");
        let hour = Duration::from_secs(60 * 60);
        broken.restart.policy = RestartPolicy::OnFailure;
        (broken.restart.backoff, broken.restart.max_backoff) = (hour, hour);
    });
    let main = start(vec![user, broken]).await;
    reached(&main, "broken", ExtensionState::BackingOff).await;
    let events = main.control().events();
    main.control().reload_with(config(Vec::new())).await.unwrap();
    main.shutdown().await.unwrap();
    let came = states(events).await.into_iter();
    let ended = came.filter(|(_, state)| *state == ExtensionState::Stopped).map(|(id, _)| id);
    assert_eq!(ended.collect::<Vec<_>>(), ["broken", "user"]);
}

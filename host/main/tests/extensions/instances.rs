//! Extensions with several instances: one gets each message, and the live ones serve for the others.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use weir_host::{
    CallOptions, Error, ExtensionConfig, Main,
    config::RestartPolicy,
    control::{ControlError, ExtensionState},
};

use super::support::{Gate, config, puppet, puppet_with, reached, set, start, taken, tell};

fn threefold(id: &str) -> ExtensionConfig {
    puppet_with(id, |puppet| {
        puppet.instances = 3;
        puppet.subscribes = vec!["t".parse().unwrap()];
        puppet.wants = vec!["other@1".parse().unwrap(), format!("{id}@1").parse().unwrap()];
        puppet.config.insert("start".to_owned(), "subscribe t".to_owned());
    })
}

/// Answers by instance, for concurrent calls that take a while.
async fn answered_by(main: &Main, calls: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let call = |_| tell(main, "a", "all call other@1 run echo; own-name");
    for name in join_all((0..calls).map(call)).await {
        *counts.entry(name.unwrap().trim().to_owned()).or_default() += 1;
    }
    counts
}

fn states(main: &Main) -> Vec<(String, ExtensionState)> {
    let instances = main.control().extensions().into_iter().filter(|status| status.id.as_str() != "other");
    instances.map(|status| (status.id.to_string(), status.state)).collect()
}

#[tokio::test]
async fn instances_compete_for_requests_and_events_and_each_goes_to_one() {
    let main = start(vec![threefold("a"), puppet("other")]).await;
    let ready = ["a", "a.2", "a.3"].map(|id| (id.to_owned(), ExtensionState::Ready));
    assert_eq!(states(&main), ready);
    let counts = answered_by(&main, 120).await;
    assert_eq!(counts.values().sum::<usize>(), 120);
    assert_eq!(counts.len(), 3, "{counts:?}");
    for _ in 0..30 {
        assert_eq!(main.client().publish("t", "x").await.unwrap().delivered, 1);
    }
    let mut heard = 0;
    while heard < 30 {
        heard += tell(&main, "a", "heard").await.unwrap().lines().count();
    }
    taken(&main, "a").await;
    for _ in 0..30 {
        assert_eq!(tell(&main, "a", "heard").await.unwrap(), "");
    }
}

#[tokio::test]
async fn those_that_live_serve_for_one_that_does_not() {
    let main = start(vec![threefold("a"), puppet("other")]).await;
    main.control().stop("a.2").await.unwrap();
    assert!(!answered_by(&main, 60).await.contains_key("a.2"));
    main.control().stop("a.3").await.unwrap();
    assert_eq!(answered_by(&main, 20).await, [("a".to_owned(), 20)].into());
    // The one with the common name has no special role.
    main.control().start("a.3").await.unwrap();
    let trapped = tell(&main, "a", "trap").await.unwrap_err();
    assert_eq!(trapped, "Trapped");
    let counts = answered_by(&main, 20).await;
    assert_eq!((counts.len(), counts.values().sum::<usize>()), (1, 20), "{counts:?}");
    main.client().publish("t", "still heard").await.unwrap();
    while !tell(&main, "a", "heard").await.unwrap().contains("still heard") {}
}

#[tokio::test]
async fn what_is_commanded_of_an_extension_is_commanded_of_all_its_instances() {
    let main = start(vec![threefold("a"), puppet("other")]).await;
    main.control().stop("a").await.unwrap();
    assert!(states(&main).iter().all(|(_, state)| *state == ExtensionState::Stopped), "{:?}", states(&main));
    assert!(tell(&main, "a", "echo 1").await.unwrap_err().starts_with("NoProvider"));
    main.control().restart("a").await.unwrap();
    assert!(states(&main).iter().all(|(_, state)| *state == ExtensionState::Ready), "{:?}", states(&main));
    main.control().reload_extension("a").await.unwrap();
    assert_eq!(answered_by(&main, 90).await.len(), 3);
    let unknown = main.control().stop("a.4").await;
    assert_eq!(unknown, Err(ControlError::Unknown("a.4".to_owned())));
}

#[tokio::test]
async fn a_rolling_reload_under_load_loses_no_request() {
    let main = start(vec![threefold("a"), puppet("other")]).await;
    let client = main.client().clone();
    let load = tokio::spawn(async move {
        let mut answered = 0;
        while answered < 3000 {
            client.call("a@1", "run", "echo 1").await.unwrap();
            answered += 1;
        }
    });
    while !load.is_finished() {
        main.control().reload_extension("a").await.unwrap();
    }
    load.await.unwrap();
}

#[tokio::test]
async fn another_number_of_instances_starts_and_stops_only_those_that_differ() {
    let main = start(vec![threefold("a"), puppet("other")]).await;
    let of = |instances| {
        let mut a = threefold("a");
        a.instances = instances;
        config(vec![a, puppet("other")])
    };
    let report = main.control().reload_with(of(2)).await.unwrap();
    assert_eq!(report.removed.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["a.3"]);
    assert!(report.changed.is_empty() && report.added.is_empty(), "{report:?}");
    assert_eq!(answered_by(&main, 90).await.len(), 2);
    let report = main.control().reload_with(of(4)).await.unwrap();
    assert_eq!(report.added.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["a.3", "a.4"]);
    assert_eq!(answered_by(&main, 90).await.len(), 4);
    let report = main.control().reload_with(config(vec![puppet("other")])).await.unwrap();
    assert_eq!(report.removed.len(), 4);
    assert!(tell(&main, "a", "echo 1").await.is_err());
    let report = main.control().reload_with(of(1)).await.unwrap();
    assert_eq!(report.added.len(), 1);
    assert_eq!(answered_by(&main, 20).await, [("a".to_owned(), 20)].into());
}

#[tokio::test]
async fn new_values_reach_all_instances_though_they_hear_of_changes() {
    let mut a = puppet_with("a", |a| {
        a.instances = 2;
        a.subscribes = vec!["config.changed".parse().unwrap()];
        set(a, "start", "subscribe config.changed");
    });
    let main = start(vec![a.clone()]).await;
    set(&mut a, "colour", "red");
    let report = main.control().reload_with(config(vec![a])).await.unwrap();
    assert_eq!((report.changed.len(), &report.failed), (2, &Vec::new()), "{report:?}");
    // The event would reach one of them, so both are replaced.
    for id in ["a", "a.2"] {
        assert_eq!(main.control().status(id).unwrap().restarts, 1, "{id}");
    }
}

#[tokio::test]
async fn an_instance_that_waits_for_its_own_extension_is_served_by_another() {
    let main = start(vec![threefold("a"), puppet("other")]).await;
    assert_eq!(tell(&main, "a", "call a@1 run echo by another").await.unwrap(), "by another");
    // Alone, it would wait for ever.
    main.control().stop("a.2").await.unwrap();
    main.control().stop("a.3").await.unwrap();
    let refused = tell(&main, "a", "call a@1 run echo").await.unwrap_err();
    assert_eq!(refused, r#"Error::WouldDeadlock(["a", "a"])"#);
}

#[tokio::test]
async fn quarantine_is_of_one_instance() {
    let mut a = threefold("a");
    a.restart.policy = RestartPolicy::OnFailure;
    a.restart.failures = 1;
    a.restart.window = Duration::from_secs(60);
    let main = start(vec![a, puppet("other")]).await;
    assert_eq!(tell(&main, "a", "trap").await.unwrap_err(), "Trapped");
    let dead = loop {
        let states = states(&main);
        if let Some((id, _)) = states.iter().find(|(_, state)| *state == ExtensionState::Quarantined) {
            break id.clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(answered_by(&main, 30).await.values().sum::<usize>(), 30);
    main.control().restart(&dead).await.unwrap();
    reached(&main, &dead, ExtensionState::Ready).await;
}

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Two instances with a restart delay of at least half an hour.
fn twofold() -> ExtensionConfig {
    puppet_with("a", |a| {
        a.instances = 2;
        a.subscribes = vec!["t".parse().unwrap()];
        a.wants = vec!["gate@1".parse().unwrap()];
        set(a, "start", "subscribe t");
        a.restart.policy = RestartPolicy::OnFailure;
        (a.restart.backoff, a.restart.max_backoff) = (HOUR, 24 * HOUR);
        (a.restart.failures, a.restart.window) = (4, 24 * HOUR);
    })
}

/// The first instance dies and waits for its restart; the other serves.
async fn first_backs_off(main: &Main) {
    main.control().stop("a.2").await.unwrap();
    assert_eq!(tell(main, "a", "trap").await.unwrap_err(), "Trapped");
    reached(main, "a", ExtensionState::BackingOff).await;
    main.control().start("a.2").await.unwrap();
}

#[tokio::test]
async fn what_is_subscribed_to_stays_for_an_instance_that_waits_for_its_restart() {
    for last in ["stops", "exits", "is no longer configured"] {
        let main = Gate::new().start(vec![twofold()]).await;
        first_backs_off(&main).await;
        match last {
            "stops" => main.control().stop("a.2").await.unwrap(),
            "exits" => {
                assert_eq!(tell(&main, "a", "exit 0").await.unwrap_err(), "PeerGone");
                reached(&main, "a.2", ExtensionState::Stopped).await;
            }
            _ => {
                let mut one = twofold();
                one.instances = 1;
                let config = Gate::config(vec![one]);
                let report = main.control().reload_with(config).await.unwrap();
                assert_eq!(report.removed.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["a.2"]);
            }
        }
        assert_eq!(main.control().status("a").unwrap().state, ExtensionState::BackingOff, "{last}");
        assert_eq!(main.client().publish("t", "kept").await.unwrap().delivered, 1, "{last}");
        main.control().start("a").await.unwrap();
        while !tell(&main, "a", "heard").await.unwrap().contains("kept") {}
        // It ends with the last of them.
        main.control().stop("a").await.unwrap();
        assert_eq!(main.client().publish("t", "for nobody").await.unwrap().delivered, 0, "{last}");
    }
}

#[tokio::test]
async fn requests_wait_for_whichever_instance_comes_back_first() {
    let gate = Gate::new();
    let main = gate.start(vec![twofold()]).await;
    let status = |id| main.control().status(id).unwrap();
    first_backs_off(&main).await;
    for failures in 1..3 {
        assert_eq!(tell(&main, "a", "trap").await.unwrap_err(), "Trapped");
        reached(&main, "a.2", ExtensionState::BackingOff).await;
        assert_eq!(status("a.2").failures.len(), failures);
        main.control().start("a.2").await.unwrap();
    }
    // The first restarts within an hour; the other in two at the earliest, and then not at all.
    for (then, starts) in [(ExtensionState::BackingOff, "a.2"), (ExtensionState::Quarantined, "a")] {
        let (client, received) = (main.client().clone(), status("a.2").received);
        let dies = tokio::spawn(async move { client.call("a@1", "run", "all call gate@1 pass; trap").await });
        while status("a.2").received == received {
            tokio::task::yield_now().await;
        }
        let client = main.client().clone();
        let waits = async {
            let options = CallOptions::default().timeout(HOUR + HOUR / 2);
            client.call_with("a@1", "run", "echo served", options).await
        };
        let rest = async {
            while status("a").inbox_messages == 0 {
                tokio::task::yield_now().await;
            }
            gate.open(1);
            reached(&main, "a.2", then).await;
            assert_eq!(status("a").inbox_messages, 1, "{then}");
            // The other is quarantined by then.
            let _started = main.control().start(starts).await;
        };
        let (died, served, ()) = tokio::join!(dies, waits, rest);
        assert_eq!(died.unwrap().unwrap_err(), Error::Trapped);
        assert_eq!(served.unwrap(), "served", "{then}");
    }
}

//! Reloads under steady requests: each gets one right answer.

use std::time::{Duration, Instant};

use tokio::{task::JoinSet, time::interval};
use weir_host::{
    config::ReloadMode,
    control::{ControlError, ExtensionState},
};

use super::{
    reload::{BOTH, Components, TRAPS, write},
    support::{config, puppet_with, tell},
};

const RELOADS: u8 = 50;
const BROKEN: usize = 20;

/// A thousand requests a second.
const BETWEEN: Duration = Duration::from_millis(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_a_thousand_requests_a_second_each_is_answered_once_through_every_reload() {
    for mode in BOTH {
        reload_under_load(mode).await;
    }
}

async fn reload_under_load(mode: ReloadMode) {
    let components = Components::new();
    let provider = components.puppet(|a| {
        a.reload = mode;
        a.limits.ready_timeout = Duration::from_secs(5);
        // A busy machine may stall for longer than this many milliseconds.
        (a.limits.inbox_messages, a.limits.inbox_bytes) = (20_000, 16 << 20);
    });
    let caller = puppet_with("caller", |c| c.wants = vec!["a@1".parse().unwrap()]);
    let main = weir_host::Main::builder(config(vec![provider, caller])).start().await.unwrap();

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let client = main.client().clone();
    let steady = tokio::spawn({
        let stopped = stopped.clone();
        async move {
            let (mut ticks, mut calls, began) = (interval(BETWEEN), JoinSet::new(), Instant::now());
            while !*stopped.borrow() {
                ticks.tick().await;
                let (client, number) = (client.clone(), calls.len());
                calls.spawn(
                    async move { (number, client.call("a@1", "run", format!("echo {number}")).await) },
                );
            }
            let took = began.elapsed();
            let sent = calls.len();
            for (number, answer) in calls.join_all().await {
                assert_eq!(answer.as_deref(), Ok(number.to_string().as_bytes()), "of {sent} in {took:?}");
            }
            (sent, took)
        }
    });
    // Beside it, an extension that asks as soon as it is answered.
    let chained = async {
        let mut asked = 0_u32;
        while !*stopped.borrow() {
            let told = tell(&main, "caller", &format!("call a@1 run echo {asked}")).await;
            assert_eq!(told, Ok(asked.to_string()));
            asked += 1;
        }
        asked
    };
    let reloads = async {
        let control = main.control();
        let hash = || control.status("a").unwrap().hash.unwrap();
        for version in 1..=RELOADS {
            let before = hash();
            components.put(version + 1);
            control.reload_extension("a").await.unwrap();
            assert_ne!(hash(), before);
        }
        let serving = hash();
        for attempt in 0..BROKEN {
            match attempt % 4 {
                0 => components.put_text(TRAPS),
                1 => components.put_text(&TRAPS.replace("unreachable", "i32.const 0")),
                2 => components.put_text(&TRAPS.replace("\"run\"", "\"walk\"")),
                _ => write(&components.path(), b"no component at all"),
            }
            let reloaded = control.reload_extension("a").await;
            assert!(matches!(reloaded, Err(ControlError::NotReloaded { .. })), "{reloaded:?}");
            let status = control.status("a").unwrap();
            assert_eq!((status.state, status.hash.as_deref()), (ExtensionState::Ready, Some(&*serving)));
            assert_eq!(tell(&main, "a", "echo still here").await.unwrap(), "still here");
        }
        stop.send(true).unwrap();
    };
    let (asked, ()) = tokio::join!(chained, reloads);
    let (sent, took) = steady.await.unwrap();
    assert!(sent as u128 * 10 >= took.as_millis() * 9, "{sent} requests in {took:?}");
    assert!(asked > 0);
    let status = main.control().status("a").unwrap();
    assert_eq!((status.shed, status.late, status.inbox_messages), (0, 0, 0));
    assert_eq!(main.client().waiters(), 0);
}

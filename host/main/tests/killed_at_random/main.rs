//! Messages between extensions killed at random, from within and outside, against the promises for each kind of message,
//! at both ends: a quarter of a million, or a million in the group `soak`. `ledger.rs` judges.
//!
//! Randomness comes from a seed, printed on failure and set by `WEIR_TEST_SEED`; scheduling stays the machine's.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod books;
mod deaths;
mod ledger;

use std::{env, sync::Arc, time::Duration};

use test_guests::{
    amount,
    churn::{Ask, Deed, RECEIVERS, TOPIC},
};
use tokio::time::timeout;
use weir_host::{Config, ExtensionConfig, Main, MainConfig, config::RestartPolicy, control::ExtensionState};

use self::{deaths::Deaths, ledger::Ledger};

/// Senders, with their requests under way; 0: it waits for each.
const SENDERS: [(&str, &str); 4] = [("caller", "0"), ("few", "16"), ("many", "64"), ("more", "64")];

const LISTENER: &str = "listener";

const PATIENCE: Duration = Duration::from_secs(120);

/// Hangs outlast this; slow machines do not.
const FOR_EVER: Duration = Duration::from_secs(15 * 60);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_many_messages_among_the_dying_each_is_delivered_and_ends_as_promised() {
    let seed = env::var("WEIR_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    eprintln!("WEIR_TEST_SEED={seed}");
    let (ledger, kills) = Ledger::new(seed, amount(250_000, 1_000_000));
    let ledger = Arc::new(ledger);
    let (main, started) = Main::builder(config()).serve(ledger.clone().service()).launch().unwrap();
    let deaths = tokio::spawn(Deaths::count(main.control().events()));
    started.wait().await;
    let killer = tokio::spawn(deaths::kill(main.control().clone(), kills, seed));

    let settled = timeout(FOR_EVER, ledger.settled(&SENDERS.map(|(id, _)| id))).await;
    ledger.assert_faultless();
    assert!(settled.is_ok(), "it does not come to an end: {ledger:?}, {:?}", states(&main));
    timeout(PATIENCE, last_deaths(&main)).await.unwrap();
    ledger.close();
    killer.await.unwrap();
    timeout(PATIENCE, all_serve(&main, &ledger)).await.unwrap();
    timeout(PATIENCE / 10, nobody_waits(&main)).await.unwrap();
    for status in main.control().extensions() {
        assert_eq!((status.state, status.inbox_messages), (ExtensionState::Ready, 0), "{}", status.id);
    }
    main.shutdown().await.unwrap();
    ledger.assert_faultless();
    let deaths = deaths.await.unwrap();
    eprintln!("{deaths:?}\n{ledger:?}");
    deaths.assert_of_every_kind();
    ledger.assert_accounted(&deaths);
}

fn states(main: &Main) -> Vec<(String, ExtensionState)> {
    let statuses = main.control().extensions().into_iter();
    statuses.map(|status| (status.id.to_string(), status.state)).collect()
}

/// All senders have ended, but what they left behind may still kill its receivers: until no inbox has anything of it, and
/// a request is answered that came after what was in hand then.
async fn last_deaths(main: &Main) {
    loop {
        let nothing_waits = main.control().extensions().iter().all(|status| status.inbox_messages == 0);
        if all_answer(main).await && nothing_waits {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn all_answer(main: &Main) -> bool {
    for receiver in RECEIVERS {
        if ask(main, receiver.id).await.is_err() {
            return false;
        }
    }
    true
}

async fn all_serve(main: &Main, ledger: &Ledger) {
    let mut events = main.control().events();
    while states(main).iter().any(|(_, state)| *state != ExtensionState::Ready) {
        events.next().await.unwrap();
    }
    for receiver in RECEIVERS {
        ask(main, receiver.id).await.unwrap();
    }
    let event = Ask { from: 0, number: 1, deed: Deed::Answer };
    let receipt = main.client().publish(TOPIC, serde_json::to_vec(&event).unwrap()).await.unwrap();
    assert_eq!(receipt.delivered as usize, RECEIVERS.len() + 1);
    ledger.heard_from_main(receipt.delivered as usize).await;
}

/// Waits until the last reports are answered.
async fn nobody_waits(main: &Main) {
    while main.client().waiters() > 0 {
        tokio::task::yield_now().await;
    }
}

async fn ask(main: &Main, receiver: &str) -> Result<bytes::Bytes, weir_host::Error> {
    let ask = Ask { from: 0, number: 0, deed: Deed::Answer };
    main.client().call(&format!("{receiver}@1"), "ask", serde_json::to_vec(&ask).unwrap()).await
}

fn config() -> Config {
    let senders = SENDERS.map(|(id, window)| {
        let mut sender = churn(id);
        sender.publishes = vec![TOPIC.parse().unwrap()];
        sender.wants.extend(RECEIVERS.map(|receiver| format!("{}@1", receiver.id).parse().unwrap()));
        sender.config.insert("window".to_owned(), window.to_owned());
        // A sender that waits for each answer gets no messages, which would renew its fuel.
        sender.limits.fuel_to_start = 200_000_000;
        sender.limits.fuel_per_message = 20_000_000;
        sender.limits.stop_timeout = Duration::from_millis(50);
        sender
    });
    let receivers = RECEIVERS.map(|receiver| {
        let mut receives = listening(receiver.id);
        receives.fulfills = vec![format!("{}@1", receiver.id).parse().unwrap()];
        receives.config.insert("receiver".to_owned(), receiver.id.to_owned());
        receives.limits.inbox_messages = 48;
        receives
    });
    let mut main = MainConfig::default();
    main.request_timeout = PATIENCE;
    Config::new(main, senders.into_iter().chain(receivers).chain([listening(LISTENER)]).collect())
}

fn listening(id: &str) -> ExtensionConfig {
    let mut listening = churn(id);
    listening.subscribes = vec![TOPIC.parse().unwrap()];
    listening.config.insert("listener".to_owned(), "yes".to_owned());
    listening.limits.message_size = 64 * 1024;
    // Soon used up by a spin.
    listening.limits.fuel_per_message = 500_000;
    listening.limits.stop_timeout = Duration::from_millis(5);
    listening
}

/// The guest `churn`, always restarted, and soon.
fn churn(id: &str) -> ExtensionConfig {
    let mut churn = ExtensionConfig::new(id.parse().unwrap(), test_guests::path("churn"));
    churn.wants = vec![test_guests::churn::LEDGER.parse().unwrap()];
    // One that holds before it is ready waits for the killer, which may wait for it to be ready.
    churn.limits.ready_timeout = Duration::from_millis(300);
    churn.limits.cpu_share = "100%".parse().unwrap();
    churn.restart.policy = RestartPolicy::Always;
    churn.restart.backoff = Duration::from_millis(1);
    churn.restart.max_backoff = Duration::from_millis(4);
    churn.restart.failures = 1000;
    churn.restart.window = Duration::from_millis(10);
    churn
}

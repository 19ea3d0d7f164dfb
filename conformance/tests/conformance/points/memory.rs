//! What messages leave behind in the guest's memory.

use std::time::Duration;

use weir_host::{Error, config::QueuePolicy};

use crate::{
    language::Language,
    stage::{GUEST, Stage, until},
};

/// Sets how many messages of each kind there are.
const WANTED: &str = "WEIR_CONFORMANCE_MESSAGES";

const MESSAGES: u32 = 1000;

/// Bytes of a message. `other@1` takes no larger ones.
const SIZE: usize = 4000;

/// What the second half of the messages may add: an allocator or an interpreter grows in steps. If each left its bytes behind, it
/// were twice as much, with as few messages as there are by default.
const GROWTH: u64 = 1 << 20;

const KINDS: [&str; 12] = [
    "answer",
    "error",
    "failing handler",
    "wrong arguments",
    "publish",
    "refused publish",
    "put",
    "nested call",
    "failing call",
    "send",
    "log",
    "event and job",
];

fn messages() -> u32 {
    std::env::var(WANTED).map_or(MESSAGES, |wanted| wanted.parse().expect("it is no number"))
}

/// Enough for all messages.
pub(crate) fn patience() -> Duration {
    Duration::from_secs(60) + Duration::from_millis(20) * messages()
}

pub(super) async fn memory_stays_level(language: &Language) {
    let mut stage = Stage::with(language, |config| {
        config.queues.get_mut("conformance-out").unwrap().when_full = QueuePolicy::DropOldest;
    })
    .await;
    let half = messages() / 2;
    for kind in KINDS {
        let mut reached = [0; 2];
        for memory in &mut reached {
            for _ in 0..half {
                if !exchange(&mut stage, kind).await {
                    // The instance has ended.
                    break;
                }
            }
            *memory = stage.main.control().status(GUEST).unwrap().memory;
        }
        let [before, after] = reached;
        let is_level = after <= before.saturating_add(GROWTH);
        assert!(is_level, "{kind}: {half} messages of {SIZE} bytes took {} bytes", after - before);
    }
}

/// One message of a kind, with all that follows from it. Whether the guest goes on.
async fn exchange(stage: &mut Stage, kind: &str) -> bool {
    let payload = "x".repeat(SIZE);
    match kind {
        "answer" => assert_eq!(stage.told("echo", &payload).await, payload),
        "error" => drop(stage.refused("fail", &format!("code {payload}"), "code").await),
        "failing handler" => match stage.ask("break", "").await {
            Err(Error::Handler(error)) if error.code == "unexpected" => {}
            Err(Error::Trapped) => {
                until(|| !stage.main.control().status(GUEST).unwrap().failures.is_empty()).await;
                stage.main.control().restart(GUEST).await.unwrap();
                return false;
            }
            other => panic!("{other:?}"),
        },
        "wrong arguments" => drop(stage.refused("add", &payload, "invalid-argument").await),
        "publish" => {
            stage.told("publish", &format!("conformance.out.told {payload}")).await;
            stage.heard("told").await;
        }
        "refused publish" => {
            let refused = stage.told("publish", &format!("conformance.secret {payload}")).await;
            assert!(refused.starts_with("error permission-denied "), "{refused}");
        }
        "put" => assert_eq!(stage.told("put", &format!("conformance-out 0 {payload}")).await, "ok"),
        "nested call" => {
            assert_eq!(stage.calls(&format!("other@1 run - 0 echo {payload}")).await.len(), SIZE + 3);
        }
        "failing call" => {
            let failed = stage.calls(&format!("other@1 run - 0 error {payload}")).await;
            assert!(failed.starts_with("error handler refused "), "{failed}");
        }
        "send" => {
            assert_eq!(stage.told("send", &format!("other@1 run - 0 echo {payload}")).await, "ok");
            assert_eq!(stage.heard("response").await.len(), SIZE + 3);
        }
        "log" => assert_eq!(stage.told("log", &format!("info {payload}")).await, "ok"),
        _ => {
            stage.main.client().publish("conformance.in.told", payload.clone()).await.unwrap();
            stage.heard("heard").await;
            stage.put("conformance-jobs", &payload).await;
            assert_eq!(stage.heard("worked").await, payload);
        }
    }
    true
}

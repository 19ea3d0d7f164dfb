//! What messages leave behind in the guest's memory.

use std::time::Duration;

use futures_util::future::join_all;
use weir_host::{
    Error,
    config::{CpuShare, QueuePolicy},
};

use crate::{
    language::Language,
    stage::{GUEST, Stage, guest, until},
};

/// Sets how many messages of each kind there are.
const WANTED: &str = "WEIR_CONFORMANCE_MESSAGES";

const MESSAGES: u32 = 1000;

/// Messages under way at once: each guest's inbox and memory have room for so many.
const AT_ONCE: u32 = 32;

/// Enough for as many messages as there ever are. With the rest of its group it stays below 90 minutes.
const LONGEST: Duration = Duration::from_secs(80 * 60);

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
    let patience = Duration::from_secs(60) + Duration::from_millis(20) * messages();
    patience.min(LONGEST)
}

pub(super) async fn memory_stays_level(language: &Language) {
    let mut stage = Stage::with(language, |config| {
        config.queues.get_mut("conformance-out").unwrap().when_full = QueuePolicy::DropOldest;
        let guest = guest(config);
        guest.limits.cpu_share = CpuShare::WHOLE;
        guest.subscribes[0].messages = Some(AT_ONCE);
    })
    .await;
    let half = messages() / 2;
    for kind in KINDS {
        let mut reached = [0; 2];
        for memory in &mut reached {
            let mut exchanged = 0;
            while exchanged < half {
                // The first is alone, because it may end the instance.
                let number = if exchanged == 0 { 1 } else { AT_ONCE.min(half - exchanged) };
                if !exchange(&mut stage, kind, number).await {
                    break;
                }
                exchanged += number;
            }
            *memory = stage.main.control().status(GUEST).unwrap().memory;
        }
        let [before, after] = reached;
        let is_level = after <= before.saturating_add(GROWTH);
        assert!(is_level, "{kind}: {half} messages of {SIZE} bytes took {} bytes", after - before);
    }
}

/// So many messages of a kind at once, with all that follows from them. Whether the guest goes on.
async fn exchange(stage: &mut Stage, kind: &str, number: u32) -> bool {
    let payload = "x".repeat(SIZE);
    match kind {
        "answer" => {
            for answer in at_once(number, || stage.told("echo", &payload)).await {
                assert_eq!(answer, payload);
            }
        }
        "error" => {
            let line = format!("code {payload}");
            at_once(number, || stage.refused("fail", &line, "code")).await;
        }
        "failing handler" => {
            for outcome in at_once(number, || stage.ask("break", "")).await {
                match outcome {
                    Err(Error::Handler(error)) if error.code == "unexpected" => {}
                    Err(Error::Trapped) if number == 1 => {
                        until(|| !stage.main.control().status(GUEST).unwrap().failures.is_empty()).await;
                        stage.main.control().restart(GUEST).await.unwrap();
                        return false;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        "wrong arguments" => {
            at_once(number, || stage.refused("add", &payload, "invalid-argument")).await;
        }
        "publish" => {
            told(stage, number, "publish", &format!("conformance.out.told {payload}"), "ok 1 0 0").await;
            for _ in 0..number {
                assert_eq!(stage.heard("told").await, payload);
            }
        }
        "refused publish" => {
            let line = format!("conformance.secret {payload}");
            for refused in at_once(number, || stage.told("publish", &line)).await {
                assert!(refused.starts_with("error permission-denied "), "{refused}");
            }
        }
        "put" => told(stage, number, "put", &format!("conformance-out 0 {payload}"), "ok").await,
        "nested call" => {
            let line = format!("other@1 run - 0 echo {payload}");
            told(stage, number, "call", &line, &format!("ok {payload}")).await;
        }
        "failing call" => {
            let line = format!("other@1 run - 0 error {payload}");
            for failed in at_once(number, || stage.calls(&line)).await {
                assert!(failed.starts_with("error handler refused "), "{failed}");
            }
        }
        "send" => {
            told(stage, number, "send", &format!("other@1 run - 0 echo {payload}"), "ok").await;
            for _ in 0..number {
                assert_eq!(stage.heard("response").await, format!("ok {payload}"));
            }
        }
        "log" => told(stage, number, "log", &format!("info {payload}"), "ok").await,
        _ => {
            for _ in 0..number {
                stage.main.client().publish("conformance.in.told", payload.clone()).await.unwrap();
            }
            for _ in 0..number {
                let heard = stage.heard("heard").await;
                assert!(heard.ends_with(&format!(" 0 new main {payload}")), "{heard}");
            }
            for _ in 0..number {
                stage.put("conformance-jobs", &payload).await;
            }
            for _ in 0..number {
                assert_eq!(stage.heard("worked").await, payload);
            }
        }
    }
    true
}

/// Calls so many times at once, with this answer to each.
async fn told(stage: &Stage, number: u32, operation: &str, line: &str, answer: &str) {
    for told in at_once(number, || stage.told(operation, line)).await {
        assert_eq!(told, answer);
    }
}

async fn at_once<F: Future>(number: u32, one: impl Fn() -> F) -> Vec<F::Output> {
    join_all((0..number).map(|_| one())).await
}

//! What becomes of requests to extensions, to Main and to nobody is counted, with the time that each took.

use std::time::{Duration, Instant};

use weir_host::{CallOptions, Error, Main, control::OperationStatus};

use super::support::{Gate, builder, puppet, puppet_with, set, tell, until};

fn counted(main: &Main, provider: &str) -> Option<OperationStatus> {
    main.control().operations().into_iter().find(|status| status.provider == provider)
}

fn ended(status: &OperationStatus) -> u64 {
    status.durations.buckets.iter().sum()
}

async fn counts(main: &Main, provider: &str, number: u64) -> OperationStatus {
    until(|| counted(main, provider).is_some_and(|status| ended(&status) >= number)).await;
    counted(main, provider).unwrap()
}

#[tokio::test]
async fn each_answer_of_an_extension_is_counted_however_it_receives() {
    for receives in ["", "in-order", "any-order"] {
        let main = builder(vec![puppet_with("it", |it| set(it, "receive", receives))]).start().await.unwrap();
        assert_eq!(main.control().operations(), [], "nobody has asked for anything");
        let began = Instant::now();
        for _ in 0..3 {
            assert_eq!(tell(&main, "it", "echo here").await, Ok("here".to_owned()));
        }
        tell(&main, "it", "no such command").await.unwrap_err();
        let status = counts(&main, "it", 4).await;
        assert_eq!((&*status.contract, &*status.operation, ended(&status)), ("it@1", "run", 4));
        assert_eq!(status.failed, [("handler".into(), 1)].into());
        // The next request may be sent before the extension gives up the thread after an answer.
        let (sum, most) = (Duration::from_secs_f64(status.durations.sum), 4 * began.elapsed());
        assert!(Duration::ZERO < sum && sum <= most, "{sum:?}, {most:?}");
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn the_time_of_a_nested_call_is_in_both_and_a_timeout_has_its_own() {
    let gate = Gate::new();
    let mut outer = puppet("outer");
    outer.wants = vec!["gate@1".parse().unwrap()];
    let main = gate.start(vec![outer]).await;
    let wait = Duration::from_millis(300);
    let slow = main.client().call_with(
        "outer@1",
        "run",
        "call gate@1 pass here",
        CallOptions::default().timeout(wait),
    );
    assert_eq!(slow.await, Err(Error::Timeout));
    gate.open(1);
    // The extension goes on, and its answer comes too late to be counted again.
    let (inner, outer) = (counts(&main, "main", 1).await, counts(&main, "outer", 1).await);
    assert_eq!((ended(&outer), outer.failed), (1, [("timeout".into(), 1)].into()));
    assert!(outer.durations.sum >= wait.as_secs_f64());
    assert_eq!((&*inner.contract, &*inner.operation), ("gate@1", "pass"));
    main.shutdown().await.unwrap();
}

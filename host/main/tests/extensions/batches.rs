//! An extension dies in the middle of a batch.

use weir_host::{Client, Error, ExtensionConfig, Main, config::RestartConfig, control::ExtensionState};

use super::support::{Gate, puppet_with, reached, set, taken, tell};

/// A puppet that takes batches when the gate opens.
fn batcher(order: &str) -> ExtensionConfig {
    puppet_with("a", |a| {
        a.wants = vec!["gate@1".parse().unwrap()];
        a.autostart = false;
        set(a, "start", "call gate@1 pass");
        set(a, "receive", order);
    })
}

fn send(
    client: &Client,
    commands: &[&'static str],
) -> Vec<tokio::task::JoinHandle<Result<bytes::Bytes, Error>>> {
    commands
        .iter()
        .map(|&command| {
            let client = client.clone();
            tokio::spawn(async move { client.call("a@1", "run", command).await })
        })
        .collect()
}

/// Starts the puppet with `commands` waiting, and opens the gate; returns the first `ended` answers.
async fn run_batch(
    main: &Main,
    gate: &Gate,
    commands: &[&'static str],
    ended: usize,
) -> (Vec<Result<bytes::Bytes, Error>>, Vec<tokio::task::JoinHandle<Result<bytes::Bytes, Error>>>) {
    let control = main.control().clone();
    let starting = tokio::spawn(async move { control.start("a").await });
    reached(main, "a", ExtensionState::Starting).await;
    let mut calls = send(main.client(), commands);
    while main.control().status("a").unwrap().inbox_messages < commands.len() as u64
        && !calls.iter().any(tokio::task::JoinHandle::is_finished)
    {
        tokio::task::yield_now().await;
    }
    gate.open(1);
    starting.await.unwrap().unwrap();
    let waiting = calls.split_off(ended);
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    (answers, waiting)
}

#[tokio::test]
async fn what_was_not_reached_of_a_batch_in_order_goes_to_the_next_instance() {
    let gate = Gate::new();
    let mut batcher = batcher("in-order");
    batcher.restart = RestartConfig::default();
    let main = gate.start(vec![batcher]).await;
    let commands = ["echo 1", "echo 2", "trap", "echo 4", "echo 5"];
    let (answers, waiting) = run_batch(&main, &gate, &commands, 3).await;
    assert_eq!(answers, [Ok("1".into()), Ok("2".into()), Err(Error::Trapped)]);
    gate.open(1);
    let mut answers = Vec::new();
    for call in waiting {
        answers.push(call.await.unwrap());
    }
    assert_eq!(answers, [Ok("4".into()), Ok("5".into())]);
}

#[tokio::test]
async fn every_unanswered_request_of_a_batch_in_any_order_is_trapped() {
    let gate = Gate::new();
    let main = gate.start(vec![batcher("any-order")]).await;
    let commands = ["echo 1", "trap", "echo 3"];
    let (answers, _) = run_batch(&main, &gate, &commands, 3).await;
    assert_eq!(answers, [Ok("1".into()), Err(Error::Trapped), Err(Error::Trapped)]);
    reached(&main, "a", ExtensionState::Failed).await;
    assert_eq!(main.control().status("a").unwrap().inbox_messages, 0);
}

#[tokio::test]
async fn events_of_a_batch_that_an_extension_died_with_are_a_gap_for_the_next_instance() {
    let gate = Gate::new();
    let mut batcher = batcher("in-order");
    batcher.subscribes = vec!["t".parse().unwrap()];
    set(&mut batcher, "start", "all subscribe t; call gate@1 pass");
    let main = gate.start(vec![batcher]).await;
    let control = main.control().clone();
    let starting = tokio::spawn(async move { control.start("a").await });
    while main.control().status("a").unwrap().sent == 0 {
        tokio::task::yield_now().await;
    }
    for payload in ["1", "trap", "3"] {
        main.client().publish("t", payload).await.unwrap();
    }
    gate.open(2);
    starting.await.unwrap().unwrap();
    reached(&main, "a", ExtensionState::Failed).await;
    main.client().publish("t", "4").await.unwrap();
    main.control().start("a").await.unwrap();
    taken(&main, "a").await;
    assert_eq!(tell(&main, "a", "heard").await.unwrap(), "event:  4 3 4");
}

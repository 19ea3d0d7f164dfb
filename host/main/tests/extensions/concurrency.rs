//! Many concurrent requests: each gets its one right answer, and none waits for another.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use weir_host::ExtensionConfig;

use super::support::{Gate, extension, start};

const REQUESTS: usize = 100_000;
/// Each makes three more on its way.
const FROM_OUTSIDE: usize = REQUESTS / 4;
const AT_ONCE: usize = 48;

fn relay(id: &str, next: &str) -> ExtensionConfig {
    let mut relay = extension(id, "relay");
    relay.fulfills = vec![format!("{id}@1").parse().unwrap()];
    relay.wants = vec![format!("{next}@1").parse().unwrap()];
    relay.config.insert("contract".to_owned(), format!("{id}@1"));
    relay.config.insert("next".to_owned(), format!("{next}@1"));
    relay
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_extensions_in_a_circle_answer_100_000_requests_each_rightly() {
    let main = start(vec![relay("a", "b"), relay("b", "c"), relay("c", "a")]).await;
    let next = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (client, next) = (main.client().clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= FROM_OUTSIDE {
                        return;
                    }
                    // Three times on, all the way round: the last to add its name is the first.
                    let (contract, round) = [("a@1", "acba"), ("b@1", "bacb"), ("c@1", "cbac")][number % 3];
                    let payload = format!("\u{3}request {number}:");
                    let answer = client.call(contract, "pass", payload).await.unwrap();
                    assert_eq!(answer, format!("\0request {number}:{round}"));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    let statuses = main.control().extensions();
    let received: u64 = statuses.iter().map(|status| status.received).sum();
    // With the three responses of each relayed request.
    assert_eq!(received, (FROM_OUTSIDE * 7) as u64);
    assert_eq!(main.client().waiters(), 0);
    assert!(statuses.iter().all(|status| status.inbox_messages == 0 && status.late == 0));
}

#[tokio::test]
async fn a_handler_that_waits_for_another_contract_delays_no_other_request() {
    let gate = Gate::new();
    let mut waiter = extension("waiter", "waiter");
    waiter.fulfills = vec!["waiter@1".parse().unwrap()];
    waiter.requires = vec!["gate@1".parse().unwrap()];
    let main = gate.start(vec![waiter]).await;
    let client = main.client().clone();
    let slow = tokio::spawn(async move { client.call("waiter@1", "slow", "slow").await });
    while main.control().status("waiter").unwrap().sent == 0 {
        tokio::task::yield_now().await;
    }
    for number in 0..100 {
        let text = number.to_string();
        assert_eq!(main.client().call("waiter@1", "quick", text.clone()).await.unwrap(), text);
    }
    assert!(!slow.is_finished());
    gate.open(1);
    assert_eq!(slow.await.unwrap().unwrap(), "slow");
}

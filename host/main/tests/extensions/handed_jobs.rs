//! An extension gets a job while something else comes first.

use std::time::Duration;

use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};
use weir_host::{ExtensionConfig, Main, config::QueueConfig};

use super::support::{Gate, PATIENCE, puppet_with, tell};

fn user(id: &str) -> ExtensionConfig {
    puppet_with(id, |puppet| {
        (puppet.puts, puppet.takes) = (vec!["q".parse().unwrap()], vec!["q".parse().unwrap()]);
        puppet.wants = ["b@1", "gate@1"].into_iter().map(|name| name.parse().unwrap()).collect();
        puppet.wants.retain(|contract| contract.as_str() != format!("{id}@1"));
    })
}

#[tokio::test]
async fn one_that_is_handed_a_job_and_gets_a_request_first_leaves_the_job_to_another() {
    let gate = Gate::new();
    let mut config = Gate::config(["a", "b", "c"].map(user).to_vec());
    config.queues.insert("q".parse().unwrap(), QueueConfig::default());
    let main = Main::builder(config).serve(gate.service()).start().await.unwrap();
    // They wait in this order.
    for (id, waiting) in [("b", 1), ("c", 2)] {
        tell(&main, id, "take q one-by-one").await.unwrap();
        until(|| main.control().queues()[0].idle_readers == waiting).await;
    }
    // Both wait for `b`: the request comes first, and lasts until the gate opens.
    tell(&main, "a", "all send b@1 run call gate@1 pass x; put q job").await.unwrap();
    let done_by_c = async {
        while !tell(&main, "c", "heard").await.unwrap().contains("job:") {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, done_by_c).await.expect("the job stays with one who does not take it");
    gate.open(1);
}

async fn until(holds: impl Fn() -> bool) {
    let waits = async {
        while !holds() {
            yield_now().await;
        }
    };
    timeout(PATIENCE, waits).await.unwrap();
}

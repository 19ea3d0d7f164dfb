//! Extensions that take jobs from two queues at once.

use std::time::Duration;

use weir_host::{
    Config, ExtensionConfig, Main,
    config::{QueueConfig, QueuePolicy},
};

use super::support::*;

fn worker(id: &str, in_flight: u32) -> ExtensionConfig {
    puppet_with(id, |puppet| {
        puppet.limits.in_flight = in_flight;
        let queues = || ["q1", "q2"].map(|name| name.parse().unwrap()).to_vec();
        (puppet.puts, puppet.takes) = (queues(), queues());
    })
}

async fn start_with(extensions: Vec<ExtensionConfig>, queue: &QueueConfig) -> Main {
    let mut config: Config = config(extensions);
    config.main.request_timeout = Duration::from_secs(5);
    for name in ["q1", "q2"] {
        config.queues.insert(name.parse().unwrap(), queue.clone());
    }
    Main::builder(config).start().await.unwrap()
}

async fn put(main: &Main, queue: &str, payload: &'static str) {
    main.client().queue(queue).unwrap().put(payload).await.unwrap();
}

async fn in_hand(main: &Main, queues: &[&str], jobs: u64) {
    let held = || {
        let status = main.control().queues();
        let of_these = status.iter().filter(|status| queues.contains(&status.queue.as_str()));
        of_these.map(|status| status.in_hand).sum::<u64>()
    };
    let all = async {
        while held() < jobs {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), all).await.is_ok(), "{} of {jobs} in hand", held());
}

#[tokio::test]
async fn with_a_job_in_hand_that_came_one_by_one_a_pollable_says_that_another_waits() {
    let main = start_with(vec![worker("a", 8)], &QueueConfig::default()).await;
    put(&main, "q1", "poll").await;
    put(&main, "q1", "second").await;
    tell(&main, "a", "take q1 one-by-one").await.unwrap();
    // The receive of this request comes after the first job.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let heard = tell(&main, "a", "heard").await.unwrap();
    assert!(heard.contains("poll, and there is more"), "a receive would not have waited: {heard}");
}

#[tokio::test]
async fn no_more_jobs_are_in_hand_than_in_flight_whatever_queues_they_come_from() {
    let main = start_with(vec![worker("a", 2)], &QueueConfig::default()).await;
    for queue in ["q1", "q2"] {
        // It is refused, or the jobs are bounded.
        drop(tell(&main, "a", &format!("take {queue} 2")).await);
        for _ in 0..2 {
            put(&main, queue, "job").await;
        }
    }
    in_hand(&main, &["q1", "q2"], 2).await;
    for _ in 0..10 {
        tell(&main, "a", "echo").await.unwrap();
    }
    let all: u64 = main.control().queues().iter().map(|queue| queue.in_hand).sum();
    assert!(all <= 2, "{all} jobs in hand, and `in-flight` is 2");
}

#[tokio::test]
async fn two_full_block_queues_that_face_each_other_are_an_error_that_names_the_cycle() {
    let mut queue = QueueConfig::default();
    (queue.messages, queue.when_full) = (1, QueuePolicy::Block);
    let main = start_with(vec![worker("a", 8), worker("b", 8)], &queue).await;
    for (id, own) in [("a", "q1"), ("b", "q2")] {
        tell(&main, id, &format!("take {own} 1")).await.unwrap();
        put(&main, own, "job").await;
        in_hand(&main, &[own], 1).await;
    }
    // The first waits; the second closes the circle and is refused at once.
    let (who, outcome) = tokio::select! {
        outcome = tell(&main, "a", "put q2 more") => (["a", "b", "a"], outcome),
        outcome = tell(&main, "b", "put q1 more") => (["b", "a", "b"], outcome),
    };
    assert_eq!(outcome, Err(format!("Error::WouldDeadlock({who:?})")));
    let blocked: Vec<_> = main.control().queues().iter().map(|queue| queue.blocked).collect();
    assert_eq!(blocked.iter().sum::<u64>(), 1, "{blocked:?}");
}

#[tokio::test]
async fn one_long_job_does_not_keep_the_handler_of_another_queue_from_its_jobs_for_good() {
    let mut guest = extension("two-queues", "two_queues");
    guest.limits.in_flight = 2;
    guest.limits.stop_timeout = Duration::from_secs(1);
    guest.takes = ["slow", "quick"].map(|name| name.parse().unwrap()).to_vec();
    let mut config = config(vec![guest]);
    for name in ["slow", "quick"] {
        config.queues.insert(name.parse().unwrap(), QueueConfig::default());
    }
    let main = Main::builder(config).start().await.unwrap();
    put(&main, "slow", "").await;
    in_hand(&main, &["slow"], 1).await;
    for _ in 0..8 {
        put(&main, "quick", "").await;
    }
    let done = || main.control().queues().iter().map(|queue| queue.done).sum::<u64>();
    let all = async {
        while done() < 8 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), all).await.is_ok(), "{} of 8 are done", done());
}

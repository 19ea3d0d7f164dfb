//! Shared queues between extensions and Main's client: delivery, completion and failure of jobs.

use std::time::Duration;

use weir_host::{
    Config, Error, ExtensionConfig, Main, MainConfig,
    client::PutOptions,
    config::{QueueConfig, QueuePolicy, RestartPolicy},
    control::ExtensionState,
    traffic::QueueStatus,
};

use super::support::{PATIENCE, config, extension, puppet_with, reached, tell};

/// With a queue `q` and its dead letters in `dead`.
async fn start(extensions: Vec<ExtensionConfig>, change: impl FnOnce(&mut QueueConfig)) -> Main {
    Main::builder(with_queue(extensions, change)).start().await.unwrap()
}

fn with_queue(extensions: Vec<ExtensionConfig>, change: impl FnOnce(&mut QueueConfig)) -> Config {
    let mut config = config(extensions);
    let mut queue = QueueConfig::default();
    queue.dead_letter = Some("dead".parse().unwrap());
    change(&mut queue);
    config.queues.insert("q".parse().unwrap(), queue);
    config
}

fn user(id: &str) -> ExtensionConfig {
    puppet_with(id, |puppet| {
        puppet.puts = vec!["q".parse().unwrap()];
        puppet.takes = vec!["q".parse().unwrap()];
    })
}

/// Works through the queue, and publishes under `worked.ID`; always restarted.
fn worker(id: &str, mode: &str) -> ExtensionConfig {
    let mut worker = extension(id, "worker");
    worker.takes = vec!["q".parse().unwrap()];
    worker.publishes = vec!["worked.>".parse().unwrap()];
    worker.config.extend([("queue".to_owned(), "q".to_owned()), ("mode".to_owned(), mode.to_owned())]);
    worker.restart.policy = RestartPolicy::Always;
    worker.restart.backoff = Duration::from_millis(1);
    worker.restart.max_backoff = Duration::from_millis(1);
    worker.restart.failures = 1000;
    worker
}

fn status(main: &Main, queue: &str) -> QueueStatus {
    main.control().queues().into_iter().find(|status| status.queue.as_str() == queue).unwrap()
}

async fn until(main: &Main, holds: impl Fn(&Main) -> bool) {
    let waits = async {
        while !holds(main) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap();
}

#[tokio::test]
async fn a_job_that_comes_one_by_one_is_done_with_the_next_receive_and_not_before() {
    let main = start(vec![user("a")], |_| {}).await;
    let queue = main.client().queue("q").unwrap();
    let (first, second) = (queue.put("1").await.unwrap(), queue.put("2").await.unwrap());
    assert_eq!(tell(&main, "a", "take q one-by-one").await.unwrap(), "()");
    until(&main, |main| status(main, "q").done == 2).await;
    let heard = tell(&main, "a", "heard").await.unwrap();
    assert_eq!(heard, format!("job: {first} 1 1\njob: {second} 1 2"));
    assert!(tell(&main, "a", &format!("done {first}")).await.unwrap_err().contains("not in hand"));
}

#[tokio::test]
async fn jobs_that_were_asked_for_are_in_hand_until_they_are_done_or_given_back() {
    let main = start(vec![user("a")], |_| {}).await;
    let queue = main.client().queue("q").unwrap();
    for job in ["1", "2", "3"] {
        queue.put(job).await.unwrap();
    }
    tell(&main, "a", "take q 2").await.unwrap();
    until(&main, |main| status(main, "q").delivered == 2).await;
    let heard = tell(&main, "a", "heard").await.unwrap();
    let ids: Vec<&str> = heard.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    tell(&main, "a", &format!("done {}", ids[0])).await.unwrap();
    tell(&main, "a", &format!("give-back {}", ids[1])).await.unwrap();
    let QueueStatus { waiting, in_hand, done, returned, .. } = status(&main, "q");
    assert_eq!((waiting, in_hand, done, returned), (2, 0, 1, 1));
    tell(&main, "a", "take q 1").await.unwrap();
    until(&main, |main| status(main, "q").delivered == 3).await;
    assert_eq!(tell(&main, "a", "heard").await.unwrap(), format!("job: {} 2 2", ids[1]));
    let refused = tell(&main, "a", "take q 100000").await.unwrap_err();
    assert!(refused.contains("in-flight"), "{refused}");
}

/// Puts as many jobs as the puppet then has in hand; returns their ids.
async fn in_hand(main: &Main, id: &str, jobs: u64) -> Vec<String> {
    for _ in 0..jobs {
        main.client().queue("q").unwrap().put("x").await.unwrap();
    }
    let before = status(main, "q").delivered;
    tell(main, id, &format!("take q {jobs}")).await.unwrap();
    until(main, |main| status(main, "q").delivered == before + jobs).await;
    let heard = tell(main, id, "heard").await.unwrap();
    heard.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn jobs_are_done_together_also_beside_some_that_are_not_in_hand() {
    let main = start(vec![user("a")], |_| {}).await;
    let ids = in_hand(&main, "a", 4).await;
    let [done, twice, third, fourth] = &*ids else { panic!("{ids:?}") };
    tell(&main, "a", &format!("done {done}")).await.unwrap();
    let command = format!("done-all {done} {twice} {twice} 999999 {third}");
    let refused = tell(&main, "a", &command).await.unwrap_err();
    let expected = format!("3 of 5 jobs are not in hand, or were named twice: the first is {done}");
    assert!(refused.contains(&expected), "{refused}");
    let QueueStatus { waiting, in_hand, done, returned, .. } = status(&main, "q");
    assert_eq!((waiting, in_hand, done, returned), (0, 1, 3, 0));
    assert_eq!(tell(&main, "a", &format!("done-all {fourth}")).await.unwrap(), "()");
    assert_eq!(tell(&main, "a", "done-all").await.unwrap(), "()");
    assert_eq!((status(&main, "q").in_hand, status(&main, "q").done), (0, 4));
}

#[tokio::test]
async fn a_sender_that_waits_hears_of_jobs_that_were_done_together() {
    let main = start(vec![user("a")], |_| {}).await;
    let client = main.client().clone();
    let waits =
        tokio::spawn(
            async move { client.queue("q").unwrap().put_until_done("x", PutOptions::default()).await },
        );
    until(&main, |main| status(main, "q").waiting == 1).await;
    tell(&main, "a", "take q 1").await.unwrap();
    until(&main, |main| status(main, "q").in_hand == 1).await;
    let heard = tell(&main, "a", "heard").await.unwrap();
    let id = heard.split(' ').nth(1).unwrap();
    assert!(!waits.is_finished());
    assert_eq!(tell(&main, "a", &format!("done-all {id}")).await.unwrap(), "()");
    waits.await.unwrap().unwrap();
}

#[tokio::test]
async fn of_too_many_jobs_none_is_done() {
    let main = start(vec![user("a")], |_| {}).await;
    let id = in_hand(&main, "a", 1).await.remove(0);
    let refused = tell(&main, "a", &format!("done-all {}", [&*id; 1025].join(" "))).await.unwrap_err();
    assert!(refused.contains("1025 jobs; up to 1024 are possible"), "{refused}");
    assert_eq!((status(&main, "q").in_hand, status(&main, "q").done), (1, 0));
}

#[tokio::test]
async fn one_that_dies_after_it_finished_some_of_its_jobs_leaves_the_others_alone() {
    let main = start(vec![user("a")], |_| {}).await;
    let ids = in_hand(&main, "a", 3).await;
    let died = tell(&main, "a", &format!("all done-all {} {}; trap", ids[0], ids[2])).await;
    assert!(died.is_err(), "{died:?}");
    until(&main, |main| status(main, "q").in_hand == 0).await;
    let QueueStatus { waiting, done, returned, .. } = status(&main, "q");
    assert_eq!((waiting, done, returned), (1, 2, 1));
    let left = main.client().queue("q").unwrap().take().await.unwrap();
    assert_eq!((left.id().to_string(), left.deliveries()), (ids[1].clone(), 2));
}

#[tokio::test]
async fn who_dies_with_a_job_leaves_it_to_another_and_in_the_end_to_the_dead_letters() {
    let main = start(vec![worker("a", "one-by-one"), worker("b", "next")], |_| {}).await;
    let mut worked = main.client().subscribe("worked.>").unwrap();
    let queue = main.client().queue("q").unwrap();
    let poison = queue.put("die").await.unwrap();
    let good = queue.put("good").await.unwrap();
    until(&main, |main| status(main, "q").done == 1 && status(main, "dead").waiting == 1).await;
    let mut deliveries = Vec::new();
    for _ in 0..4 {
        let event = worked.next().await.unwrap();
        deliveries.push(String::from_utf8(event.payload.to_vec()).unwrap());
    }
    deliveries.sort();
    let expected = [
        format!("{good} 1 good"),
        format!("{poison} 1 die"),
        format!("{poison} 2 die"),
        format!("{poison} 3 die"),
    ];
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(deliveries, expected);
    let letters = main.control().queue_jobs("dead", 10).unwrap();
    assert_eq!((letters[0].id, letters[0].died_after), (poison, Some(3)));
    assert_eq!(letters[0].died_in.as_ref().map(|queue| queue.as_str()), Some("q"));

    main.control().stop("a").await.unwrap();
    main.control().stop("b").await.unwrap();
    assert_eq!(main.control().requeue("dead", None), Ok(1));
    let job = main.client().queue("q").unwrap().take().await.unwrap();
    assert_eq!((job.id(), job.deliveries()), (poison, 1));
}

#[tokio::test]
async fn the_record_of_a_failure_names_the_job_that_was_in_hand() {
    let mut mortal = worker("a", "next");
    mortal.restart.policy = RestartPolicy::Never;
    let main = start(vec![mortal], |_| {}).await;
    let id = main.client().queue("q").unwrap().put("die").await.unwrap();
    reached(&main, "a", ExtensionState::Failed).await;
    let failures = main.control().status("a").unwrap().failures;
    let handling = failures[0].handling.as_ref().unwrap();
    assert_eq!((&*handling.operation, &*handling.sender, handling.message), ("queue q", "main", Some(id)));
}

#[tokio::test]
async fn one_that_stops_finishes_what_it_has_in_hand_and_takes_no_more() {
    let main = start(vec![worker("a", "next")], |_| {}).await;
    let queue = main.client().queue("q").unwrap();
    queue.put("wait 50").await.unwrap();
    until(&main, |main| status(main, "q").delivered == 1).await;
    queue.put("2").await.unwrap();
    main.control().stop("a").await.unwrap();
    let QueueStatus { waiting, in_hand, done, .. } = status(&main, "q");
    assert_eq!((waiting, in_hand, done), (1, 0, 1));
    main.control().start("a").await.unwrap();
    until(&main, |main| status(main, "q").done == 2).await;
}

#[tokio::test]
async fn a_reload_hands_on_what_the_version_before_was_waiting_for() {
    for mode in [weir_host::config::ReloadMode::StopFirst, weir_host::config::ReloadMode::Overlap] {
        let mut a = worker("a", "one-by-one");
        a.reload = mode;
        let main = start(vec![a], |_| {}).await;
        let queue = main.client().queue("q").unwrap();
        for round in 1..=20 {
            queue.put("x").await.unwrap();
            main.control().reload_extension("a").await.unwrap();
            queue.put("y").await.unwrap();
            until(&main, |main| status(main, "q").done == 2 * round).await;
        }
        let QueueStatus { returned, dead, .. } = status(&main, "q");
        assert_eq!(dead, 0);
        assert!(returned <= 20, "at most what was in hand at each reload");
    }
}

#[tokio::test]
async fn only_what_is_granted_can_be_put_and_taken() {
    let puts = puppet_with("puts", |puppet| puppet.puts = vec!["q".parse().unwrap()]);
    let takes = puppet_with("takes", |puppet| puppet.takes = vec!["q".parse().unwrap()]);
    let neither = puppet_with("neither", |_| {});
    let main = start(vec![puts, takes, neither], |_| {}).await;
    tell(&main, "puts", "put q x").await.unwrap();
    for (id, command, key) in [
        ("puts", "take q 1", "takes"),
        ("takes", "put q x", "puts"),
        ("neither", "put q x", "puts"),
        ("neither", "take q 1", "puts"),
    ] {
        let refused = tell(&main, id, command).await.unwrap_err();
        assert!(refused.contains("PermissionDenied") && refused.contains(key), "{id} {command}: {refused}");
    }
    let unknown = main.client().queue("other").unwrap_err();
    assert_eq!(unknown, Error::Invalid("no queue `other` is configured".to_owned()));
}

#[tokio::test]
async fn a_put_into_a_full_queue_waits_and_another_extension_is_served_meanwhile() {
    let main = start(vec![user("a"), user("b")], |queue| {
        queue.messages = 1;
        queue.when_full = QueuePolicy::Block;
    })
    .await;
    tell(&main, "a", "put q 1").await.unwrap();
    let put = tell(&main, "a", "put q 2");
    let beside = async {
        until(&main, |main| status(main, "q").blocked == 1).await;
        assert_eq!(tell(&main, "b", "echo on").await.unwrap(), "on");
        tell(&main, "b", "take q one-by-one").await.unwrap();
    };
    let (put, ()) = tokio::join!(put, beside);
    put.unwrap();
    until(&main, |main| status(main, "q").done == 2).await;
}

#[tokio::test]
async fn a_reload_of_the_configuration_changes_queues_and_keeps_what_they_hold() {
    let main = start(vec![user("a")], |queue| queue.messages = 2).await;
    let queue = main.client().queue("q").unwrap();
    queue.put("1").await.unwrap();
    queue.put("2").await.unwrap();
    assert_eq!(queue.put("3").await, Err(Error::Overloaded("q".to_owned())));
    main.control().reload_with(with_queue(vec![user("a")], |queue| queue.messages = 3)).await.unwrap();
    queue.put("3").await.unwrap();
    main.control().reload_with(Config::new(MainConfig::default(), Vec::new())).await.unwrap();
    assert!(matches!(queue.put("4").await, Err(Error::NoProvider(_))));
    let kept = status(&main, "q");
    assert_eq!((kept.configured, kept.waiting), (false, 3));
    main.control().reload_with(with_queue(vec![user("a")], |_| {})).await.unwrap();
    tell(&main, "a", "take q one-by-one").await.unwrap();
    until(&main, |main| status(main, "q").done == 3).await;
}

#[tokio::test]
async fn whoever_waits_for_a_job_or_for_room_hears_that_main_ends() {
    let main = start(vec![user("a")], |queue| {
        queue.messages = 1;
        queue.when_full = QueuePolicy::Block;
    })
    .await;
    let client = main.client().clone();
    client.queue("q").unwrap().put("1").await.unwrap();
    let (putter, mut taker) = (client.queue("q").unwrap(), client.queue("dead").unwrap());
    let put = tokio::spawn(async move { putter.put_within(PATIENCE, "2").await });
    let take = tokio::spawn(async move { taker.take().await.map(|job| job.id()) });
    until(&main, |main| status(main, "q").blocked == 1 && status(main, "dead").idle_readers == 1).await;
    main.shutdown().await.unwrap();
    assert!(matches!(put.await.unwrap(), Err(Error::NoProvider(_))));
    assert_eq!(take.await.unwrap(), None);
}

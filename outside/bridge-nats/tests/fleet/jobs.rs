//! Jobs that cross: kept by JetStream until they are done, and their ends.

use std::time::{Duration, Instant};

use weir_peer::{Error, Job, Queue};

use super::{
    contracts::{AT_ONCE, start},
    node::Plan,
    process::{PATIENCE, until},
    server::Server,
};

/// A node that puts into `work`.
fn putter() -> Plan {
    Plan {
        name: "hall".to_owned(),
        main: "[queue.work]\nstore = \"store@1\"\n".to_owned(),
        app: "puts = [\"work\"]".to_owned(),
        peer: "fulfills = [\"store@1\"]\nputs = [\"work\"]".to_owned(),
        bridge_main: "store = \"store@1\"".to_owned(),
        bridge: "[export]\nqueues.work = { senders = [\"app:test\"] }".to_owned(),
        ..Plan::default()
    }
}

/// A node whose test takes from `work`, and `dead`.
fn taker(name: &str, import: &str) -> Plan {
    Plan {
        name: name.to_owned(),
        main: "[queue.work]\nmax-deliveries = 2\n[queue.dead]\n".to_owned(),
        app: "takes = [\"work\", \"dead\"]".to_owned(),
        peer: "puts = [\"work\", \"dead\"]".to_owned(),
        bridge: format!("[import]\n{import}"),
        ..Plan::default()
    }
}

async fn take(queue: &Queue) -> Job {
    tokio::time::timeout(PATIENCE, queue.take()).await.expect("a job comes").unwrap()
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_job_is_kept_until_a_reader_somewhere_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &putter(), &server);
    hall.until_bridge_says(" ready").await;
    let puts = hall.client().await.peer().await.queue("work").unwrap();
    // Nobody takes yet.
    puts.put("first").await.unwrap();
    assert_eq!(server.stored().await, 1);
    let mut kitchen = start(
        directory.path(),
        &taker("kitchen", "queues.work = { from = [\"hall\"], ack-wait = \"2s\" }"),
        &server,
    );
    let client = kitchen.client().await;
    let takes = client.peer().await.queue("work").unwrap();
    let job = take(&takes).await;
    assert_eq!((job.payload().as_ref(), job.sender(), job.deliveries()), (&b"first"[..], "node:kitchen", 1));
    // In hand for longer than `ack-wait`, and not given to anybody else meanwhile.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(server.stored().await, 1);
    job.done();
    until("the job is gone", async || (server.stored().await == 0).then_some(())).await;

    // Its reader's Main dies with a job in hand.
    puts.put("second").await.unwrap();
    let job = take(&takes).await;
    let before = client.peer().await;
    kitchen.kill_main();
    let _ended = before.closed().await;
    drop(job);
    kitchen.start_main();
    let takes = client.peer().await.queue("work").unwrap();
    let job = take(&takes).await;
    assert_eq!(job.payload().as_ref(), b"second");
    assert!(job.deliveries() > 1, "{}", job.deliveries());
    job.done();
    until("the job is gone", async || (server.stored().await == 0).then_some(())).await;

    server.kill();
    hall.until_bridge_says("NATS is away").await;
    let refused = puts.put("third").await.unwrap_err();
    assert_eq!(refused.code(), "no-provider", "{refused}");
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_job_that_no_reader_finishes_goes_to_the_queue_for_dead_ones() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &putter(), &server);
    let import =
        "queues.work = { from = [\"hall\"], dead-letter = \"dead\" }\nqueues.dead = { from = [\"*\"] }";
    let kitchen = start(directory.path(), &taker("kitchen", import), &server);
    hall.until_bridge_says(" ready").await;
    kitchen.until_bridge_says(" ready").await;
    let peer = kitchen.client().await.peer().await;
    let (takes, dead) = (peer.queue("work").unwrap(), peer.queue("dead").unwrap());
    hall.client().await.peer().await.queue("work").unwrap().put("poison").await.unwrap();
    for delivery in 1..=2 {
        let job = take(&takes).await;
        assert_eq!(job.deliveries(), delivery);
        drop(job);
    }
    let job = take(&dead).await;
    assert_eq!(job.payload().as_ref(), b"poison");
    job.done();
    until("nothing is left", async || (server.stored().await == 0).then_some(())).await;
    kitchen.until_bridge_says("is dead, and is now in `dead`: its readers did not finish it").await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn jobs_of_nodes_and_senders_that_are_not_listed_do_not_cross() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut plan = putter();
    plan.bridge = plan.bridge.replace("app:test", "somebody");
    let hall = start(directory.path(), &plan, &server);
    hall.until_bridge_says(" ready").await;
    let refused = hall.client().await.peer().await.queue("work").unwrap().put("x").await.unwrap_err();
    assert_eq!(refused.code(), "permission-denied", "{refused}");

    let mut plan = putter();
    plan.name = "attic".to_owned();
    let attic = start(directory.path(), &plan, &server);
    attic.until_bridge_says(" ready").await;
    attic.client().await.peer().await.queue("work").unwrap().put("x").await.unwrap();
    let import = "queues.work = { from = [\"hall\"], max-deliveries = 1 }";
    let kitchen = start(directory.path(), &taker("kitchen", import), &server);
    kitchen.until_bridge_says("refuses a job of node `attic`").await;
    // It stays for a node that takes it.
    let cellar = start(directory.path(), &taker("cellar", "queues.work = { from = [\"attic\"] }"), &server);
    let job = take(&cellar.client().await.peer().await.queue("work").unwrap()).await;
    assert_eq!(job.payload().as_ref(), b"x");
    job.done();
    until("the job is gone", async || (server.stored().await == 0).then_some(())).await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_bridge_that_takes_from_a_queue_leaves_its_jobs_while_nats_is_away() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let mut plan = putter();
    (plan.main, plan.bridge_main) = ("[queue.work]\n".to_owned(), String::new());
    plan.peer = "takes = [\"work\"]".to_owned();
    plan.bridge = "[export]\nqueues.work = { senders = [\"*\"], by = \"take\" }".to_owned();
    let hall = start(directory.path(), &plan, &server);
    hall.until_bridge_says(" ready").await;
    server.kill();
    hall.until_bridge_says("NATS is away").await;
    let puts = hall.client().await.peer().await.queue("work").unwrap();
    for number in 0..20 {
        puts.put(number.to_string()).await.unwrap();
    }
    server.start_again().await;
    until("the server has all", async || (server.stored().await == 20).then_some(())).await;
    let kitchen = start(directory.path(), &taker("kitchen", "queues.work = { from = [\"hall\"] }"), &server);
    let takes = kitchen.client().await.peer().await.queue("work").unwrap();
    let mut numbers = Vec::new();
    for _ in 0..20 {
        let job = take(&takes).await;
        numbers.push(String::from_utf8(job.payload().to_vec()).unwrap().parse::<u32>().unwrap());
        job.done();
    }
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..20));
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_stream_that_is_no_work_queue_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let client = async_nats::connect(server.address().to_string()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let config = async_nats::jetstream::stream::Config {
        name: "weir_test_work".to_owned(),
        subjects: vec!["else.>".to_owned()],
        ..async_nats::jetstream::stream::Config::default()
    };
    context.create_stream(config).await.unwrap();
    let mut hall = start(directory.path(), &putter(), &server);
    hall.until_bridge_says("the stream `weir_test_work` is there already, and is no work queue").await;
    let refused = hall.client().await.peer().await.queue("work").unwrap().put("x").await.unwrap_err();
    assert!(matches!(refused, Error::NoProvider(_) | Error::Handler(_)), "{refused:?}");
    // It does not wait for the stream when it is told to end.
    let begun = Instant::now();
    assert_eq!(hall.end_bridge().await, Some(0));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_job_in_the_hand_of_a_main_that_dies_goes_to_another_node_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &putter(), &server);
    let import = "queues.work = { from = [\"hall\"], ack-wait = \"5m\" }";
    let mut kitchen = start(directory.path(), &taker("kitchen", import), &server);
    hall.until_bridge_says(" ready").await;
    kitchen.until_bridge_says(" ready").await;
    hall.client().await.peer().await.queue("work").unwrap().put("work").await.unwrap();
    let near = kitchen.client().await.peer().await.queue("work").unwrap();
    let job = take(&near).await;
    let attic = start(directory.path(), &taker("attic", import), &server);
    let far = attic.client().await.peer().await.queue("work").unwrap();
    kitchen.kill_main();
    let again = take(&far).await;
    assert_eq!(again.payload(), job.payload());
    assert_eq!(again.deliveries(), 2);
    again.done();
    until("the job is gone", async || (server.stored().await == 0).then_some(())).await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_job_that_outlasts_a_bridge_goes_to_another_node_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &putter(), &server);
    let import = "queues.work = { from = [\"hall\"], ack-wait = \"5m\" }";
    let mut plan = taker("kitchen", import);
    plan.bridge.push_str("\n[limits]\ndrain-timeout = \"500ms\"\n");
    let mut kitchen = start(directory.path(), &plan, &server);
    hall.until_bridge_says(" ready").await;
    kitchen.until_bridge_says(" ready").await;
    let puts = hall.client().await.peer().await.queue("work").unwrap();
    let near = kitchen.client().await.peer().await.queue("work").unwrap();
    puts.put("slow").await.unwrap();
    puts.put("quick").await.unwrap();
    let [slow, quick] = [take(&near).await, take(&near).await];
    let attic = start(directory.path(), &taker("attic", import), &server);
    attic.until_bridge_says(" ready").await;
    // One is done meanwhile.
    let (code, ()) = tokio::join!(kitchen.end_bridge(), async { quick.done() });
    assert_eq!(code, Some(0));
    let again = take(&attic.client().await.peer().await.queue("work").unwrap()).await;
    assert_eq!((again.payload(), again.deliveries()), (slow.payload(), 2));
    again.done();
    until("nothing is left", async || (server.stored().await == 0).then_some(())).await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_full_queue_of_main_costs_no_job_a_delivery() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &putter(), &server);
    let import = "queues.work = { from = [\"hall\"], max-deliveries = 1, ack-wait = \"2s\" }";
    let mut plan = taker("kitchen", import);
    plan.main = "[queue.work]\nmessages = 1\n".to_owned();
    plan.app = "takes = [\"work\"]".to_owned();
    plan.peer = "puts = [\"work\"]".to_owned();
    let kitchen = start(directory.path(), &plan, &server);
    hall.until_bridge_says(" ready").await;
    kitchen.until_bridge_says(" ready").await;
    let puts = hall.client().await.peer().await.queue("work").unwrap();
    for number in 0..3 {
        puts.put(number.to_string()).await.unwrap();
    }
    kitchen.until_bridge_says("a job of queue `work` waits: `work` is full").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let takes = kitchen.client().await.peer().await.queue("work").unwrap();
    let mut taken = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let job = take(&takes).await;
        assert_eq!(job.deliveries(), 1);
        taken.insert(job.payload().to_vec());
        job.done();
    }
    assert_eq!(taken.len(), 3);
    until("nothing is left", async || (server.stored().await == 0).then_some(())).await;
    assert!(!kitchen.bridge_said().contains("is dead"));
}

//! Jobs through bridges, Mains and a server that are killed at random. The account is kept here, by a process that lives.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use fastrand::Rng;
use tokio::task::JoinSet;
use weir_peer::Peer;

use super::{
    client::Client,
    node::{Node, Plan},
    process::{number, until},
    server::Server,
};

const PUTTERS: usize = 64;

const TAKERS: usize = 32;

/// Time for one put. Then its fate is unknown, and the account puts another job.
const PUT_WITHIN: Duration = Duration::from_secs(5);

/// Before another attempt at what has just failed.
const BREATH: Duration = Duration::from_millis(5);

/// Something dead lives again after this at most.
const DEAD_AT_MOST_MS: u64 = 500;

/// What a taker does with a job takes so long at most.
const BUSY_AT_MOST_US: u64 = 10_000;

/// What was promised, and what came.
#[derive(Debug, Default)]
struct Account {
    /// Attempts so far. Each has a number of its own.
    attempts: u64,
    /// Nothing more will be killed.
    is_quiet: bool,
    /// Jobs that are promised: the put returned well.
    acknowledged: Vec<u64>,
    /// Attempts by how they failed.
    failed: BTreeMap<&'static str, u64>,
    /// How often each number came.
    came: HashMap<u64, u32>,
    /// Further deliveries of a number that has come before, by `deliveries`.
    again: BTreeMap<u32, u64>,
    /// Those whose `deliveries` says less than how often the number has come.
    miscounted: Vec<u64>,
}

impl Account {
    /// The number of the next attempt, unless enough are acknowledged and all is killed that shall be.
    fn next(&mut self, jobs: usize) -> Option<u64> {
        let is_next = self.acknowledged.len() < jobs || !self.is_quiet;
        self.attempts += u64::from(is_next);
        is_next.then_some(self.attempts)
    }

    fn settle(&mut self, number: u64, outcome: Result<(), &'static str>) {
        match outcome {
            Ok(()) => self.acknowledged.push(number),
            Err(why) => *self.failed.entry(why).or_default() += 1,
        }
    }

    fn take_in(&mut self, number: u64, deliveries: u32) {
        let came = self.came.entry(number).or_default();
        *came += 1;
        if *came > 1 {
            *self.again.entry(deliveries).or_default() += 1;
        }
        if deliveries < *came {
            self.miscounted.push(number);
        }
    }

    fn missing(&self) -> Vec<u64> {
        self.acknowledged.iter().copied().filter(|number| !self.came.contains_key(number)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Server,
    Main(usize),
    Bridge(usize),
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn no_acknowledged_job_is_lost_whatever_is_killed_and_what_comes_twice_says_so() {
    let jobs: usize = number("WEIR_FLEET_JOBS", 10_000);
    let kills: usize = number("WEIR_FLEET_KILLS", 10);
    let seed = number("WEIR_FLEET_SEED", fastrand::u64(..));
    println!("{jobs} jobs, {kills} kills, WEIR_FLEET_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let mut nodes = nodes(directory.path(), &server);
    nodes.iter_mut().for_each(Node::start);

    let account = Arc::new(Mutex::new(Account::default()));
    let [source, sink] = [nodes[0].client().await, nodes[1].client().await];
    let (mut putters, mut takers) = (JoinSet::new(), JoinSet::new());
    let begun = Instant::now();
    for _ in 0..PUTTERS {
        putters.spawn(put(source.clone(), account.clone(), jobs));
    }
    for _ in 0..TAKERS {
        takers.spawn(take(sink.clone(), account.clone()));
    }
    let acknowledged = || account.lock().unwrap().acknowledged.len();
    for _ in 0..kills {
        let moment = acknowledged() + rng.usize(1..=jobs / (kills + 1));
        until("further jobs are acknowledged", async || (acknowledged() >= moment).then_some(())).await;
        let victim = [Victim::Server, Victim::Main(0), Victim::Main(1), Victim::Bridge(0), Victim::Bridge(1)]
            [rng.usize(..5)];
        let dead = Duration::from_millis(rng.u64(..DEAD_AT_MOST_MS));
        println!(
            "{:>8.3?} s: {} jobs, {victim:?} is dead for {dead:?}",
            begun.elapsed().as_secs_f32(),
            acknowledged()
        );
        kill(victim, &mut server, &mut nodes, dead).await;
    }
    account.lock().unwrap().is_quiet = true;
    while let Some(putter) = putters.join_next().await {
        putter.unwrap();
    }
    let all_in = begun.elapsed();
    let (mut before, mut since) = (usize::MAX, Instant::now());
    loop {
        let missing = account.lock().unwrap().missing().len();
        if missing == 0 {
            break;
        }
        if missing < before {
            (before, since) = (missing, Instant::now());
        }
        assert!(since.elapsed() < LOST_AFTER, "{missing} acknowledged jobs do not come");
        tokio::time::sleep(BREATH).await;
    }
    until("the server has no job left", async || (server.stored().await == 0).then_some(())).await;
    let took = begun.elapsed();
    takers.shutdown().await;

    let account = account.lock().unwrap();
    let unpromised = account.came.len() - account.acknowledged.len();
    let again: u64 = account.again.values().sum();
    println!(
        "{} attempts, {} acknowledged in {all_in:?}, all taken in {took:?}; failed: {:?}\n\
         {unpromised} came that were not acknowledged; {again} came again, by `deliveries`: {:?}",
        account.attempts,
        account.acknowledged.len(),
        account.failed,
        account.again
    );
    assert!(account.acknowledged.len() >= jobs);
    assert_eq!(account.miscounted, [0_u64; 0], "a job that comes again says by `deliveries` how often");
    for node in &mut nodes {
        node.assert_alive();
    }
}

/// Jobs in hand of what died come again after the bridge's `ack-wait`.
const LOST_AFTER: Duration = Duration::from_secs(60);

fn nodes(directory: &std::path::Path, server: &Server) -> [Node; 2] {
    let source = Plan {
        name: "source".to_owned(),
        main: "[queue.work]\nstore = \"source.store@1\"\n".to_owned(),
        app: "puts = [\"work\"]\n".to_owned(),
        peer: "fulfills = [\"source.store@1\"]\nputs = [\"work\"]\n".to_owned(),
        bridge_main: "store = \"source.store@1\"".to_owned(),
        bridge: "[export.queues.work]\nsenders = [\"*\"]\n".to_owned(),
        ..Plan::default()
    };
    let sink = Plan {
        name: "sink".to_owned(),
        main: "[queue.work]\nmessages = 10_000\nmax-deliveries = 100\n".to_owned(),
        app: "takes = [\"work\"]\n".to_owned(),
        peer: "puts = [\"work\"]\n".to_owned(),
        bridge: "[import.queues.work]\nfrom = [\"source\"]\nmax-deliveries = 100\nack-wait = \"5s\"\n"
            .to_owned(),
        ..Plan::default()
    };
    [source, sink].map(|plan| Node::new(directory, &plan, server.address()))
}

/// Kills one, and starts it again.
async fn kill(victim: Victim, server: &mut Server, nodes: &mut [Node], dead: Duration) {
    match victim {
        Victim::Server => server.kill(),
        Victim::Main(node) => nodes[node].kill_main(),
        Victim::Bridge(node) => nodes[node].kill_bridge(),
    }
    tokio::time::sleep(dead).await;
    match victim {
        Victim::Server => server.start_again().await,
        Victim::Main(node) => nodes[node].start_main(),
        Victim::Bridge(node) => nodes[node].start_bridge(),
    }
}

/// Puts jobs until the account has enough.
async fn put(client: Client, account: Arc<Mutex<Account>>, jobs: usize) {
    loop {
        let number = account.lock().unwrap().next(jobs);
        let Some(number) = number else { return };
        let outcome = put_one(&client.peer().await, number).await;
        account.lock().unwrap().settle(number, outcome);
        if outcome.is_err() {
            tokio::time::sleep(BREATH).await;
        }
    }
}

async fn put_one(peer: &Peer, number: u64) -> Result<(), &'static str> {
    let queue = peer.queue("work").map_err(|_| "no queue")?;
    let put = queue.put_within(PUT_WITHIN, number.to_le_bytes().to_vec()).await;
    put.map(drop).map_err(|error| match error {
        weir_peer::Error::NoProvider(_) => "no-provider",
        weir_peer::Error::Timeout => "timeout",
        weir_peer::Error::PeerGone => "peer-gone",
        weir_peer::Error::NotReady(_) => "not-ready",
        weir_peer::Error::Overloaded(_) => "overloaded",
        weir_peer::Error::Handler(_) => "handler",
        _ => "another",
    })
}

/// Takes jobs until the test ends, and is busy with each for a while.
async fn take(client: Client, account: Arc<Mutex<Account>>) {
    loop {
        let peer = client.peer().await;
        let Ok(queue) = peer.queue("work") else { continue };
        while let Ok(job) = queue.take().await {
            let number = u64::from_le_bytes(job.payload()[..].try_into().unwrap());
            account.lock().unwrap().take_in(number, job.deliveries());
            tokio::time::sleep(Duration::from_micros(fastrand::u64(..BUSY_AT_MOST_US))).await;
            job.done();
        }
        tokio::time::sleep(BREATH).await;
    }
}

//! `cpu-share` over time. Alone in its process, and `cargo xtask test` runs no other beside it, so that no other test
//! takes the processors.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "shared with the tests of hostile extensions")]
#[path = "hostile/stage.rs"]
mod stage;
#[expect(dead_code, reason = "shared with the tests of extensions")]
#[path = "extensions/support.rs"]
mod support;

use std::{
    fs,
    ops::Sub,
    path::PathBuf,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use weir_host::{CallOptions, Error, ExtensionConfig};

use self::{
    stage::Stage,
    support::{extension, set},
};

const TEN_SECONDS: Duration = Duration::from_secs(10);

/// The guest `hostile` with this share, and fuel that only messages renew.
fn sharing(id: &str, share: &str, fuel: u64) -> ExtensionConfig {
    let mut sharing = extension(id, "hostile");
    sharing.fulfills = vec![format!("{id}@1").parse().unwrap()];
    sharing.subscribes = vec![id.parse().unwrap()];
    sharing.publishes = vec![id.parse().unwrap()];
    sharing.limits.cpu_share = share.parse().unwrap();
    sharing.limits.fuel_per_message = fuel;
    sharing.limits.stop_timeout = Duration::from_millis(200);
    set(&mut sharing, "contract", &format!("{id}@1"));
    sharing
}

/// Case 52 of `hostile`.
#[tokio::test]
async fn a_spin_on_receive_and_one_just_under_its_fuel_stay_within_their_share() {
    const ENDLESS: u64 = 1_000_000_000_000_000;
    // Nine tenths of it are used by `work-and-receive`.
    const FUEL: u64 = 2_000_000;
    let kinds = [
        ("spin-5", "5%", ENDLESS, "storm receive", 0.05),
        ("spin-20", "20%", ENDLESS, "storm receive", 0.2),
        ("under-5", "5%", FUEL, "work-and-receive 125000 under-5", 0.05),
        ("under-20", "20%", FUEL, "work-and-receive 125000 under-20", 0.2),
    ];
    let stage = Stage::start(kinds.map(|(id, share, fuel, _, _)| sharing(id, share, fuel)).into()).await;
    let worker = Worker::find();
    let (began, ran) = (Instant::now(), worker.times());
    let before = kinds.map(|(id, ..)| stage.status(id).cpu);
    // None answers: the deadline is the clock.
    let calls = kinds.map(|(id, _, _, command, _)| {
        let (contract, patience) = (format!("{id}@1"), CallOptions::default().timeout(TEN_SECONDS));
        let client = stage.main.client().clone();
        async move { client.call_with(&contract, "run", command, patience).await }
    });
    let outcomes = join_all(calls).await;
    let cpu = kinds.map(|(id, ..)| stage.status(id).cpu);
    let (took, ran) = (began.elapsed(), worker.times() - ran);
    // On a thread that was never idle the shares could not all be met, nor can a test tell the right division.
    let was_idle = took.saturating_sub(ran.on_a_processor + ran.waiting_for_one) > took / 20;
    for (kind, outcome) in outcomes.into_iter().enumerate() {
        let (id, .., share) = kinds[kind];
        assert_eq!(outcome, Err(Error::Timeout), "{id}");
        let used = (cpu[kind] - before[kind]).as_secs_f64() / took.as_secs_f64();
        assert!(used < 1.2 * share, "`{id}` had {used} for {share}");
        assert!(used > 0.8 * share || !was_idle, "`{id}` had {used} for {share}; {ran:?}");
    }
    if !was_idle {
        let all: Duration = cpu.iter().zip(before).map(|(cpu, before)| *cpu - before).sum();
        assert!(all > ran.on_a_processor.mul_f64(0.8), "all had {all:?} of the thread's {ran:?}");
    }
    stage.stands().await;
}

struct Worker(PathBuf);

/// Time on a processor, and time waiting for one.
#[derive(Clone, Copy, Debug)]
struct Times {
    on_a_processor: Duration,
    waiting_for_one: Duration,
}

impl Worker {
    fn find() -> Self {
        let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let is_worker = |task: &PathBuf| fs::read_to_string(task.join("comm")).unwrap().trim() == "weir-main";
        Self(tasks.into_iter().find(is_worker).unwrap())
    }

    fn times(&self) -> Times {
        let text = fs::read_to_string(self.0.join("schedstat")).unwrap();
        let mut times = text.split(' ').map(|time| Duration::from_nanos(time.trim().parse().unwrap()));
        Times { on_a_processor: times.next().unwrap(), waiting_for_one: times.next().unwrap() }
    }
}

impl Sub for Times {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            on_a_processor: self.on_a_processor - earlier.on_a_processor,
            waiting_for_one: self.waiting_for_one - earlier.waiting_for_one,
        }
    }
}

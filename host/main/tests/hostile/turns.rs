//! How often others run while an extension works, and how long they wait.
//!
//! Measured in the worker's own processor time, so that other load hardly shows. "Long" is relative to native code on
//! that thread just before.

use std::{
    future::poll_fn,
    hint::black_box,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use weir_host::{Control, Main, Service};

/// A busy machine, or the host of a virtual one, spoils some attempts. A fault spoils all.
pub(crate) const ATTEMPTS: usize = 10;

/// `turns@1`: a handler on the worker that takes every turn it gets.
#[derive(Clone, Default)]
pub(crate) struct Turns {
    enough: Arc<AtomicBool>,
    watched: Arc<Mutex<Option<Watched>>>,
    measured: Arc<Mutex<Option<Waits>>>,
}

#[derive(Clone)]
struct Watched {
    control: Control,
    id: String,
}

impl Watched {
    /// Grows with each run, however fast the extension is.
    fn cpu(&self) -> Duration {
        self.control.status(&self.id).unwrap().cpu
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Turns that the extension ran before.
    pub(crate) turns: u32,
    /// Waits longer than `short`.
    late: u32,
    longest: Duration,
    /// The bound without bulk operations: slices and the ends of instances take under a millisecond.
    short: Duration,
    /// The bound of all waits: longer than one uninterrupted piece, such as a fill of 16 MiB.
    piece: Duration,
}

impl Waits {
    /// Whether 19 in 20 were short. Without yields none would be.
    pub(crate) fn are_short(&self) -> bool {
        self.late.saturating_mul(20) <= self.turns
    }

    /// Whether none exceeded a single piece of a guest of 16 MiB.
    pub(crate) fn are_of_single_pieces(&self) -> bool {
        self.longest < self.piece
    }
}

impl Turns {
    pub(crate) fn service(&self) -> Service {
        let turns = self.clone();
        Service::new("turns@1".parse().unwrap()).on("watch".parse().unwrap(), move |_| {
            let turns = turns.clone();
            async move {
                let waits = turns.measure().await;
                *turns.measured.lock().unwrap() = Some(waits);
                Ok("".into())
            }
        })
    }

    /// Measures waits for turns while the extension `id` works.
    pub(crate) async fn during<T>(
        &self,
        main: &Main,
        id: &str,
        happens: impl Future<Output = T>,
    ) -> (T, Waits) {
        self.enough.store(false, Ordering::Relaxed);
        *self.watched.lock().unwrap() = Some(Watched { control: main.control().clone(), id: id.to_owned() });
        let happens = async {
            let happened = happens.await;
            self.enough.store(true, Ordering::Relaxed);
            happened
        };
        let (watched, happened) = tokio::join!(main.client().call("turns@1", "watch", ""), happens);
        watched.unwrap();
        (happened, self.measured.lock().unwrap().take().unwrap())
    }

    async fn measure(&self) -> Waits {
        let watched = self.watched.lock().unwrap().take().unwrap();
        let short = pace().max(Duration::from_millis(2));
        let mut waits = Waits { turns: 0, late: 0, longest: Duration::ZERO, short, piece: 30 * short };
        let mut cpu = watched.cpu();
        while !self.enough.load(Ordering::Relaxed) {
            let before = processor_time();
            next_turn().await;
            let waited = processor_time() - before;
            waits.late += u32::from(waited > waits.short);
            waits.longest = waits.longest.max(waited);
            let now = watched.cpu();
            waits.turns += u32::from(now > cpu);
            cpu = now;
        }
        waits
    }
}

/// Time for eight million additions: about 2 ms, more on slow machines, where everything takes longer.
fn pace() -> Duration {
    let times = (0..5).map(|_| {
        let before = processor_time();
        black_box((0..8_000_000_u64).fold(0, |sum, number| black_box(sum + number)));
        processor_time() - before
    });
    times.min().unwrap_or_default()
}

/// Goes to the end of the worker's queue: `yield_now` would wait for its look at timers.
async fn next_turn() {
    let mut is_next = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_next, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

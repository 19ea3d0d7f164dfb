//! How often others have their turn while an extension works, and how long they wait for it.
//!
//! Measured on the worker thread itself, in that thread's processor time: what else the machine is
//! busy with hardly shows. What is long is told by what native code takes there, just before.

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

/// Times that something is tried whose waits are too long: the machine holds up one of them, a fault
/// all.
pub(crate) const ATTEMPTS: usize = 3;

/// `turns@1`: a handler on the worker that takes every turn that it gets, as others would.
#[derive(Clone, Default)]
pub(crate) struct Turns {
    enough: Arc<AtomicBool>,
    watched: Arc<Mutex<Option<Watched>>>,
    measured: Arc<Mutex<Option<Waits>>>,
}

/// The extension whose work is watched.
#[derive(Clone)]
struct Watched {
    control: Control,
    id: String,
}

impl Watched {
    /// What it has used of the thread. It grows each time that it runs, however fast it is.
    fn cpu(&self) -> Duration {
        self.control.status(&self.id).unwrap().cpu
    }
}

/// What somebody waited for turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Turns before which the extension had run.
    pub(crate) turns: u32,
    /// Waits of any kind that were longer than `short`.
    late: u32,
    /// The longest of them.
    longest: Duration,
    /// What nobody waits longer for, where no bulk operation is: a slice is less than a millisecond, and
    /// so is the end of an instance.
    short: Duration,
    /// What nobody waits longer for at all: what is carried out in one piece, such as a fill of 16 MiB,
    /// takes less.
    piece: Duration,
}

impl Waits {
    /// Whether 19 in 20 were short. Without yields, or with a yield in so many slices, none would be.
    pub(crate) fn are_short(&self) -> bool {
        self.late.saturating_mul(20) <= self.turns
    }

    /// Whether nobody waited longer than for what a guest of 16 MiB can have done in one piece.
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
                let waits = turns.watch().await;
                *turns.measured.lock().unwrap() = Some(waits);
                Ok("".into())
            }
        })
    }

    /// How it is to wait for turns while something happens in which the extension `id` works.
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

    async fn watch(&self) -> Waits {
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

/// How long eight million additions take when nothing comes between: 2 ms or so, and more on a slow
/// machine, on which all else takes longer, too.
fn pace() -> Duration {
    let times = (0..5).map(|_| {
        let before = processor_time();
        black_box((0..8_000_000_u64).fold(0, |sum, number| black_box(sum + number)));
        processor_time() - before
    });
    times.min().unwrap_or_default()
}

/// Goes to the end of the worker's queue: `yield_now` would wait until the worker looks at timers.
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

/// Of the thread that asks.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

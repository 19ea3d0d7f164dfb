//! How often others have their turn while an extension works, and how long they wait for it.
//!
//! Measured on the worker thread itself, in that thread's processor time: what else the machine is
//! busy with does not show.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use weir_host::{Main, Service};

/// `turns@1`: a handler on the worker that takes every turn that it gets, as others would.
#[derive(Clone, Default)]
pub(crate) struct Turns {
    enough: Arc<AtomicBool>,
}

/// What nobody waits longer for, where no bulk operation is: a slice is less than a millisecond, and
/// ending an instance takes a debug build another half.
const LONGEST: Duration = Duration::from_millis(2);

/// What somebody waited for turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Turns that came after something else had run for more than 3 µs.
    pub(crate) turns: u32,
    /// Those of them that came later than [`LONGEST`].
    late: u32,
    /// The longest time between two turns.
    pub(crate) longest: Duration,
}

impl Waits {
    /// Whether 99 in 100 came in time. The machine itself may hold one of them up.
    pub(crate) fn are_short(&self) -> bool {
        u64::from(self.late) * 100 <= u64::from(self.turns)
    }
}

impl Turns {
    pub(crate) fn service(&self) -> Service {
        let turns = self.clone();
        Service::new("turns@1".parse().unwrap()).on("watch".parse().unwrap(), move |_| {
            let turns = turns.clone();
            async move {
                let Waits { turns, late, longest } = turns.watch().await;
                Ok(format!("{turns} {late} {}", longest.as_micros()).into())
            }
        })
    }

    /// How it is to wait for turns while something happens.
    pub(crate) async fn during<T>(&self, main: &Main, happens: impl Future<Output = T>) -> (T, Waits) {
        self.enough.store(false, Ordering::Relaxed);
        let happens = async {
            let happened = happens.await;
            self.enough.store(true, Ordering::Relaxed);
            happened
        };
        let (waits, happened) = tokio::join!(main.client().call("turns@1", "watch", ""), happens);
        let waits = String::from_utf8(waits.unwrap().to_vec()).unwrap();
        let numbers: Vec<u32> = waits.split(' ').map(|number| number.parse().unwrap()).collect();
        let &[turns, late, longest] = numbers.as_slice() else { panic!("{waits}") };
        (happened, Waits { turns, late, longest: Duration::from_micros(longest.into()) })
    }

    async fn watch(&self) -> Waits {
        let mut waits = Waits { turns: 0, late: 0, longest: Duration::ZERO };
        let mut last = processor_time();
        while !self.enough.load(Ordering::Relaxed) {
            next_turn().await;
            let now = processor_time();
            let waited = now - last;
            if waited > Duration::from_micros(3) {
                waits.turns += 1;
                waits.late += u32::from(waited > LONGEST);
                waits.longest = waits.longest.max(waited);
            }
            last = now;
        }
        waits
    }
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

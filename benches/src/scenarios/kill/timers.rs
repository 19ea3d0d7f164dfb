//! The timers of a Main's worker thread: when one really fires.
//!
//! They count whole milliseconds from the worker's start. They fire when the worker next looks after their
//! last millisecond, all of the same one together.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    time::{Sleep, sleep_until},
};
use weir_host::{Builder, Main, Service, blocking::wait};

use crate::scenarios::device::wait_until;

const TICK: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Timers {
    worker: Handle,
    /// A moment between two ticks.
    edge: Instant,
}

#[derive(Debug)]
pub(super) struct Timer {
    fired: Arc<Fired>,
    /// Dropped, it does not fire.
    _sleep: Pin<Box<Sleep>>,
}

/// The time of firing, recorded in the waker, before any task runs.
#[derive(Debug, Default)]
struct Fired(OnceLock<SystemTime>);

impl Wake for Fired {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.get_or_init(SystemTime::now);
    }
}

impl Timers {
    /// Starts a Main, with access to its worker's timers.
    pub(super) fn start(builder: Builder) -> Result<(Main, Self)> {
        let (tell, mut told) = mpsc::channel(1);
        let worker = Service::new("worker@1".parse()?).on("tell".parse()?, move |_| {
            // There is room: it is called once.
            let _told = tell.try_send(Handle::current());
            std::future::ready(Ok("".into()))
        });
        let main = wait(builder.serve(worker).start())?;
        wait(main.client().call("worker@1", "tell", ""))?;
        let worker = told.try_recv().context("the worker did not tell")?;
        let edge = edge(&worker)?;
        Ok((main, Self { worker, edge }))
    }

    /// A future moment, early in a tick: the next some hundred microseconds are in the same tick.
    pub(super) fn early_in_a_tick(&self) -> Instant {
        let into_tick = self.edge.elapsed().as_nanos() % TICK.as_nanos();
        // The remainder is less than a million.
        let into_tick = Duration::from_nanos(u64::try_from(into_tick).unwrap_or_default());
        Instant::now() - into_tick + TICK + TICK / 5
    }

    /// Sets a timer. Fails if its time has passed already.
    pub(super) fn at(&self, end: Instant) -> Result<Timer> {
        Timer::new(&self.worker, end)
    }
}

impl Timer {
    fn new(worker: &Handle, end: Instant) -> Result<Self> {
        let fired = Arc::<Fired>::default();
        let _worker = worker.enter();
        let mut sleep = Box::pin(sleep_until(end.into()));
        let polled = sleep.as_mut().poll(&mut Context::from_waker(&Waker::from(fired.clone())));
        ensure!(polled == Poll::Pending, "a timer was set too late");
        Ok(Self { fired, _sleep: sleep })
    }

    /// When the timer fired. `None` until it fires.
    pub(super) fn fired(&self) -> Option<SystemTime> {
        self.fired.0.get().copied()
    }
}

/// Finds a moment between two ticks. Of closely spaced timers, those that end in the same tick fire together.
fn edge(worker: &Handle) -> Result<Instant> {
    const STEP: Duration = Duration::from_micros(25);
    const TRIES: u32 = 100;

    for _ in 0..TRIES {
        let first = Instant::now() + 5 * TICK;
        let ends: Vec<Instant> = (0..40).map(|n| first + n * STEP).collect();
        let timers = ends.iter().map(|end| Timer::new(worker, *end)).collect::<Result<Vec<_>>>()?;
        wait_until(first + 10 * TICK);
        let Some(fired) = timers.iter().map(Timer::fired).collect::<Option<Vec<_>>>() else { continue };
        let apart = |pair: &[SystemTime]| match pair {
            [one, next] => next.duration_since(*one).is_ok_and(|gap| gap > TICK / 2),
            _ => false,
        };
        let mut edges = ends.iter().skip(1).zip(fired.windows(2)).filter(|(_, pair)| apart(pair));
        // A delay of the worker may have hidden the edge, or look like another.
        if let (Some((edge, _)), None) = (edges.next(), edges.next()) {
            return Ok(*edge);
        }
    }
    bail!("the worker's ticks were not found");
}

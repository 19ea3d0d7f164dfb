//! Signals between a running instance and its supervisor, besides messages.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicBool, Ordering},
    task::{Poll, Waker},
};

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use weir_bus::PeerId;

/// What an instance tells its supervisor while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The instance serves.
    Ready,
    /// The instance cannot serve for now, for this reason.
    Interrupted(String),
}

/// A notice and the run that gave it. The notice counts only while that run goes on.
#[derive(Debug)]
pub struct Noted {
    /// The peer of the extension.
    pub peer: PeerId,
    /// The number of the run that gave the notice.
    pub run: u64,
    /// The notice itself.
    pub notice: Notice,
}

/// Signals between a running instance and its supervisor, besides messages.
#[derive(Debug)]
pub struct Signals {
    peer: PeerId,
    run: u64,
    notices: async_channel::Sender<Noted>,
    /// Whether another version is kept until this one is ready.
    is_on_trial: bool,
    ready: Notify,
    stop: Stop,
}

/// The order to finish, for the one task that runs the instance.
#[derive(Debug, Default)]
struct Stop {
    is_asked: AtomicBool,
    task: AtomicWaker,
}

impl Signals {
    /// Makes the signals for the run of a peer with this number.
    pub fn new(peer: PeerId, run: u64, notices: async_channel::Sender<Noted>, is_on_trial: bool) -> Self {
        Self { peer, run, notices, is_on_trial, ready: Notify::new(), stop: Stop::default() }
    }

    /// Returns the number of this run.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Tells the task of the instance that it must finish within its stop deadline. The inbox tells the guest.
    pub fn stop(&self) {
        self.stop.is_asked.store(true, Ordering::Release);
        self.stop.task.wake();
    }

    /// Waits until the instance must finish.
    pub fn stopped(&self) -> impl Future<Output = ()> {
        // This is polled whenever the instance does anything, so the waker is registered again only if it has changed.
        let mut known: Option<Waker> = None;
        poll_fn(move |context| {
            if !known.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                self.stop.task.register(context.waker());
                known = Some(context.waker().clone());
            }
            if self.stop.is_asked.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Waits until the instance is ready, or is interrupted and not on trial.
    pub(super) async fn became_ready(&self) {
        self.ready.notified().await;
    }

    /// Tells the supervisor, and ends the wait for readiness unless the instance is interrupted and on trial.
    pub(super) async fn notify(&self, notice: Notice) {
        // An interrupted instance has started, too, but only a ready one ends a trial.
        if notice == Notice::Ready || !self.is_on_trial {
            self.ready.notify_one();
        }
        // Sending fails only when Main ends and nothing listens.
        let _main_ends = self.notices.send(Noted { peer: self.peer, run: self.run, notice }).await;
    }
}

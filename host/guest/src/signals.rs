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
    /// It serves.
    Ready,
    /// It cannot serve for now, with the reason.
    Interrupted(String),
}

/// A notice and its origin: it counts only while that run goes on.
#[derive(Debug)]
pub struct Noted {
    /// The peer of the extension.
    pub peer: PeerId,
    /// The run that gave it.
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
    /// Another version is kept until this one is ready.
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
    /// For the `run`th run of a peer.
    pub fn new(peer: PeerId, run: u64, notices: async_channel::Sender<Noted>, is_on_trial: bool) -> Self {
        Self { peer, run, notices, is_on_trial, ready: Notify::new(), stop: Stop::default() }
    }

    /// The number of this run of its peer.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The instance must finish within its stop deadline; its inbox tells the guest.
    pub fn stop(&self) {
        self.stop.is_asked.store(true, Ordering::Release);
        self.stop.task.wake();
    }

    /// Waits until it must finish.
    pub fn stopped(&self) -> impl Future<Output = ()> {
        // Polled whenever the instance does anything, nearly always for nothing.
        let mut known: Option<Waker> = None;
        poll_fn(move |context| {
            if !known.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                self.stop.task.register(context.waker());
                known = Some(context.waker().clone());
            }
            if self.stop.is_asked.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Waits until it is ready, or interrupted and not on trial. Each is signalled once.
    pub(super) async fn became_ready(&self) {
        self.ready.notified().await;
    }

    pub(super) async fn notify(&self, notice: Notice) {
        // Either way it has started, but only a ready version ends a trial.
        if notice == Notice::Ready || !self.is_on_trial {
            self.ready.notify_one();
        }
        // Fails only when Main ends and nothing listens.
        let _main_ends = self.notices.send(Noted { peer: self.peer, run: self.run, notice }).await;
    }
}

//! What passes between a running instance and its supervisor, beside messages.

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
    /// It cannot serve for now, and why.
    Interrupted(String),
}

/// A notice, and who gave it: it counts only while that run goes on.
#[derive(Debug)]
pub struct Noted {
    /// Of the extension.
    pub peer: PeerId,
    /// The run in which it was given.
    pub run: u64,
    /// What it tells.
    pub notice: Notice,
}

/// What passes between a running instance and its supervisor, beside messages.
#[derive(Debug)]
pub struct Signals {
    peer: PeerId,
    run: u64,
    notices: async_channel::Sender<Noted>,
    /// Another version is kept until it is ready.
    is_on_trial: bool,
    ready: Notify,
    stop: Stop,
}

/// That an instance is to finish, for the one task that runs it.
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

    /// Which run of its peer it is.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The instance is to finish within its stop deadline; its inbox says so to the guest.
    pub fn stop(&self) {
        self.stop.is_asked.store(true, Ordering::Release);
        self.stop.task.wake();
    }

    /// Waits until it is to finish.
    pub fn stopped(&self) -> impl Future<Output = ()> {
        // Looked at each time that the instance does anything, and nearly always for nothing.
        let mut known: Option<Waker> = None;
        poll_fn(move |context| {
            if !known.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                self.stop.task.register(context.waker());
                known = Some(context.waker().clone());
            }
            if self.stop.is_asked.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Waits until it is ready, or says how it is without being on trial: each is said once.
    pub(super) async fn became_ready(&self) {
        self.ready.notified().await;
    }

    pub(super) async fn notify(&self, notice: Notice) {
        // Either way it has started; but a trial ends with what serves.
        if notice == Notice::Ready || !self.is_on_trial {
            self.ready.notify_one();
        }
        // It fails only as Main ends, and nobody listens any more.
        let _main_ends = self.notices.send(Noted { peer: self.peer, run: self.run, notice }).await;
    }
}

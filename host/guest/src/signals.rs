//! Signals between a running instance and its supervisor, besides messages.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use weir_bus::{EndedByCaller, MessageId, Peer, PeerId, Waiter};

use crate::instance::InstanceEnd;

/// What an instance tells its supervisor while it runs.
#[derive(Debug)]
pub enum Notice {
    /// The instance serves.
    Ready,
    /// The instance cannot serve for now, for this reason.
    Interrupted(String),
    /// A request failed that had an instance of its own, and the extension serves on.
    Failed(Box<InstanceEnd>),
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
    is_to_stop: AtomicBool,
    /// Requests whose waits have ended, for which the instance must be ended if it has them in hand.
    ends_for: Mutex<Vec<Arc<Waiter>>>,
    /// Whether there is something new for the task.
    is_news: AtomicBool,
    /// The one task that runs the instance.
    task: Mutex<Option<Waker>>,
}

/// What the task of an instance must do.
#[derive(Debug)]
pub(super) enum Order {
    /// Let it finish within its stop deadline.
    Stop,
    /// End it, because the caller of this request in hand wants that.
    End(MessageId),
}

impl Signals {
    /// Makes the signals for the run of a peer with this number.
    pub fn new(peer: PeerId, run: u64, notices: async_channel::Sender<Noted>, is_on_trial: bool) -> Self {
        Self {
            peer,
            run,
            notices,
            is_on_trial,
            ready: Notify::new(),
            is_to_stop: AtomicBool::new(false),
            ends_for: Mutex::default(),
            is_news: AtomicBool::new(false),
            task: Mutex::default(),
        }
    }

    /// Returns the number of this run.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Tells the task of the instance that it must finish within its stop deadline. The inbox tells the guest.
    pub fn stop(&self) {
        self.is_to_stop.store(true, Ordering::Release);
        self.tell();
    }

    fn tell(&self) {
        // Not a store, so that whoever clears it sees what all before this one have told.
        self.is_news.swap(true, Ordering::AcqRel);
        let task = self.task.lock().clone();
        task.into_iter().for_each(Waker::wake);
    }

    /// Leaves the waker of the task. What is told later wakes it, each time.
    fn wait(&self, task: &Waker) {
        let former = self.task.lock().replace(task.clone());
        drop(former);
    }

    /// Waits until the instance must finish.
    pub fn stopped(&self) -> impl Future<Output = ()> {
        poll_fn(|context| {
            self.wait(context.waker());
            if self.is_to_stop.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Returns the next order for the task of the instance, which is this peer's present one. A stop comes once.
    pub(super) fn order(&self, peer: &Peer) -> impl FnMut(&mut Context<'_>) -> Poll<Order> {
        let (mut known, mut stops) = (None::<Waker>, false);
        move |context| {
            // This is polled whenever the instance does anything, so the waker is left again only if it has changed.
            if !known.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                self.wait(context.waker());
                known = Some(context.waker().clone());
            }
            if !self.is_news.load(Ordering::Acquire) {
                return Poll::Pending;
            }
            self.is_news.swap(false, Ordering::AcqRel);
            if let Some(request) = self.must_end(peer) {
                return Poll::Ready(Order::End(request));
            }
            if !stops && self.is_to_stop.load(Ordering::Acquire) {
                stops = true;
                return Poll::Ready(Order::Stop);
            }
            Poll::Pending
        }
    }

    /// Returns a request in hand for which the instance must be ended. The others are answered, or will not be taken: their
    /// waits had ended before this was told.
    fn must_end(&self, peer: &Peer) -> Option<MessageId> {
        let requests = std::mem::take(&mut *self.ends_for.lock());
        requests.iter().find(|request| peer.has_in_hand(request)).map(|request| request.id())
    }

    /// Waits until the instance is ready, or is interrupted and not on trial.
    pub(super) async fn became_ready(&self) {
        self.ready.notified().await;
    }

    /// Tells the supervisor, and ends the wait for readiness unless the instance is interrupted and on trial.
    pub(super) async fn notify(&self, notice: Notice) {
        // An interrupted instance has started, too, but only a ready one ends a trial.
        let starts = match &notice {
            Notice::Ready => true,
            Notice::Interrupted(_) => !self.is_on_trial,
            Notice::Failed(_) => false,
        };
        if starts {
            self.ready.notify_one();
        }
        // Sending fails only when Main ends and nothing listens.
        let _main_ends = self.notices.send(Noted { peer: self.peer, run: self.run, notice }).await;
    }
}

impl EndedByCaller for Signals {
    fn end_for(&self, request: Arc<Waiter>) {
        self.ends_for.lock().push(request);
        self.tell();
    }
}

//! The handlers that wait, each at most until its request's deadline, and the tasks that they spawn. This module knows
//! nothing of messages.

use std::{
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::{StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};

use crate::{
    Error,
    context::InHand,
    host::{BATCH, Host},
    task::{Run, Spawned},
};

/// Handlers and tasks run this many rounds before the inbox has its turn. The server's loop runs as many before sockets
/// and timers have their turn.
pub(crate) const ROUNDS: u32 = 16;

pub(crate) enum Running {
    Request(Rc<InHand>, LocalBoxFuture<'static, Result<Vec<u8>, Error>>),
    /// The handler of events or of a job, for which no caller waits.
    Unanswered(LocalBoxFuture<'static, ()>),
    Background(LocalBoxFuture<'static, Result<(), Error>>),
    Spawned(Rc<dyn Run>),
}

pub(crate) enum Done {
    Request(Rc<InHand>, Result<Vec<u8>, Error>),
    Background(Result<(), Error>),
}

/// The handlers and tasks that wait, the tasks that have not run yet, and one timer for the first deadline.
pub(crate) struct Tasks {
    waiting: FuturesUnordered<Running>,
    spawned: Spawned,
    timer: Option<(Duration, LocalBoxFuture<'static, ()>)>,
}

impl Tasks {
    pub(crate) fn new(spawned: Spawned) -> Self {
        Self { waiting: FuturesUnordered::new(), spawned, timer: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.spawned.borrow().is_empty()
    }

    /// Whether handlers or background tasks wait. Tasks that handlers spawned do not count.
    pub(crate) fn has_handlers(&self) -> bool {
        self.waiting.iter().any(|running| !matches!(running, Running::Spawned(_)))
    }

    pub(crate) fn push(&mut self, handler: Running, host: &Host) {
        if let Some(deadline) = handler.deadline() {
            self.wake_at(deadline, host);
        }
        self.waiting.push(handler);
    }

    /// Waits for the next request or background task that finishes. Other tasks finish unnoticed, and handlers past
    /// their deadline are dropped.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>, host: &Host) -> Poll<Done> {
        while let Some((_, timer)) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            self.drop_overdue(host);
        }
        for _ in 0..ROUNDS {
            self.run_spawned();
            match self.waiting.poll_next_unpin(cx) {
                Poll::Ready(Some(Some(done))) => return Poll::Ready(done),
                Poll::Ready(Some(None)) => {}
                _ if self.spawned.borrow().is_empty() => return Poll::Pending,
                _ => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Runs new tasks without a waker, up to [`BATCH`] of them. If a task waits, it is polled again with a waker.
    fn run_spawned(&self) {
        for _ in 0..BATCH {
            let Some(task) = self.spawned.borrow_mut().pop_front() else {
                return;
            };
            if task.poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                self.waiting.push(Running::Spawned(task));
            }
        }
    }

    pub(crate) fn drop_background(&mut self) {
        self.retain(|running| !matches!(running, Running::Background(_)));
    }

    fn drop_overdue(&mut self, host: &Host) {
        let now = host.now();
        self.timer = None;
        self.retain(|running| running.deadline().is_none_or(|deadline| deadline > now));
        if let Some(first) = self.waiting.iter().filter_map(Running::deadline).min() {
            self.wake_at(first, host);
        }
    }

    /// Sets the timer to this deadline, unless the timer ends earlier. It stays when its handler finishes early: most
    /// handlers have the same time, so one timer serves many.
    fn wake_at(&mut self, deadline: Duration, host: &Host) {
        if self.timer.as_ref().is_none_or(|(at, _)| deadline < *at) {
            let timer = host.sleep(deadline.saturating_sub(host.now()));
            self.timer = Some((deadline, Box::pin(timer)));
        }
    }

    fn retain(&mut self, keep: impl Fn(&Running) -> bool) {
        self.waiting = std::mem::take(&mut self.waiting).into_iter().filter(keep).collect();
    }
}

impl Running {
    fn deadline(&self) -> Option<Duration> {
        if let Self::Request(request, _) = self { request.deadline() } else { None }
    }
}

impl Future for Running {
    type Output = Option<Done>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Done>> {
        match self.get_mut() {
            Self::Request(request, future) => {
                future.as_mut().poll(cx).map(|outcome| Some(Done::Request(request.clone(), outcome)))
            }
            Self::Unanswered(future) => future.as_mut().poll(cx).map(|()| None),
            Self::Background(future) => {
                future.as_mut().poll(cx).map(|outcome| Some(Done::Background(outcome)))
            }
            Self::Spawned(task) => task.poll(cx).map(|()| None),
        }
    }
}

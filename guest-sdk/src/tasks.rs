//! Handlers that wait, each until its request's deadline. Knows nothing of messages.

use std::{
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};

use crate::{Error, context::InHand, host::Host};

pub(crate) enum Task {
    Request(Rc<InHand>, LocalBoxFuture<'static, Result<Vec<u8>, Error>>),
    /// Of events or of a job: no caller waits for them.
    Unanswered(LocalBoxFuture<'static, ()>),
    Background(LocalBoxFuture<'static, Result<(), Error>>),
}

pub(crate) enum Done {
    Request(Rc<InHand>, Result<Vec<u8>, Error>),
    Unanswered,
    Background(Result<(), Error>),
}

/// The handlers that wait, and one timer for the first deadline among them.
#[derive(Default)]
pub(crate) struct Tasks {
    waiting: FuturesUnordered<Task>,
    timer: Option<(Duration, LocalBoxFuture<'static, ()>)>,
}

impl Tasks {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn push(&mut self, task: Task, host: &Host) {
        if let Some(deadline) = task.deadline() {
            self.wake_at(deadline, host);
        }
        self.waiting.push(task);
    }

    /// The next handler that finishes. A handler past its deadline is dropped where it waits.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>, host: &Host) -> Poll<Done> {
        while let Some((_, timer)) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            self.drop_overdue(host);
        }
        match self.waiting.poll_next_unpin(cx) {
            Poll::Ready(Some(done)) => Poll::Ready(done),
            _ => Poll::Pending,
        }
    }

    pub(crate) fn drop_background(&mut self) {
        self.retain(|task| !matches!(task, Task::Background(_)));
    }

    fn drop_overdue(&mut self, host: &Host) {
        let now = host.now();
        self.timer = None;
        self.retain(|task| task.deadline().is_none_or(|deadline| deadline > now));
        if let Some(first) = self.waiting.iter().filter_map(Task::deadline).min() {
            self.wake_at(first, host);
        }
    }

    /// Keeps the timer when its handler finishes early: most handlers have the same time, so one timer serves
    /// many.
    fn wake_at(&mut self, deadline: Duration, host: &Host) {
        if self.timer.as_ref().is_none_or(|(at, _)| deadline < *at) {
            let timer = host.sleep(deadline.saturating_sub(host.now()));
            self.timer = Some((deadline, Box::pin(timer)));
        }
    }

    fn retain(&mut self, keep: impl Fn(&Task) -> bool) {
        self.waiting = std::mem::take(&mut self.waiting).into_iter().filter(keep).collect();
    }
}

impl Task {
    fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Request(request, _) => request.deadline(),
            _ => None,
        }
    }
}

impl Future for Task {
    type Output = Done;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        match self.get_mut() {
            Self::Request(request, future) => {
                future.as_mut().poll(cx).map(|outcome| Done::Request(request.clone(), outcome))
            }
            Self::Unanswered(future) => future.as_mut().poll(cx).map(|()| Done::Unanswered),
            Self::Background(future) => future.as_mut().poll(cx).map(Done::Background),
        }
    }
}

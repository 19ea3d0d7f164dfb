//! Where a caller waits for just one answer.

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use parking_lot::Mutex;

use weir_names::Error;

#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    outcome: Option<Result<Bytes, Error>>,
    task: Option<Waker>,
    is_over: bool,
}

impl Slot {
    pub(crate) async fn outcome(&self) -> Result<Bytes, Error> {
        poll_fn(|context| self.poll(context)).await
    }

    /// The caller waits no more: an answer that is there or on its way is forgotten.
    pub(crate) fn close(&self) {
        let closed = SlotState { outcome: None, task: None, is_over: true };
        let forgotten = std::mem::replace(&mut *self.0.lock(), closed);
        drop(forgotten);
    }

    pub(super) fn fill(&self, outcome: Result<Bytes, Error>) {
        let task = {
            let mut waiting = self.0.lock();
            if waiting.is_over {
                return;
            }
            waiting.outcome = Some(outcome);
            waiting.task.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Takes the outcome out, for its one caller.
    fn poll(&self, context: &Context<'_>) -> Poll<Result<Bytes, Error>> {
        let mut waiting = self.0.lock();
        match waiting.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                let former = waiting.task.replace(context.waker().clone());
                drop(waiting);
                drop(former);
                Poll::Pending
            }
        }
    }
}

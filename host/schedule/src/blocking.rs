//! Waiting on the caller's own thread, for programs without async code.

use std::{
    cell::Cell,
    convert::Infallible,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use tokio::task::coop::poll_proceed;

use crate::drive::{Alarm, drive};

/// Why a blocking call failed.
#[derive(Debug, thiserror::Error)]
pub enum BlockingError<E> {
    /// The call was made inside an async task, or in a handler on Main's worker thread.
    #[error(
        "blocking call from inside an async task; use the async form, or move the call to a thread of its own"
    )]
    InAsync,
    /// The call itself failed.
    #[error(transparent)]
    Call(#[from] E),
}

/// Waits on this thread for the outcome of `call`.
///
/// # Errors
///
/// [`BlockingError::InAsync`] inside an async task or on a worker thread: `call` is then dropped unpolled.
/// [`BlockingError::Call`] if `call` fails.
pub fn wait<T, E>(call: impl Future<Output = Result<T, E>>) -> Result<T, BlockingError<E>> {
    refuse_in_async()?;
    let alarm = Alarm::default();
    Ok(drive(call, &alarm)?)
}

/// Waits on this thread for `work`, for at most `timeout`. After that, drops `work` and returns none. Waits without end
/// with [`Duration::MAX`].
///
/// # Errors
///
/// [`BlockingError::InAsync`] inside an async task or on a worker thread: `work` is then dropped unpolled.
pub fn wait_for<T>(
    timeout: Duration,
    work: impl Future<Output = T>,
) -> Result<Option<T>, BlockingError<Infallible>> {
    refuse_in_async()?;
    let alarm = Alarm::default();
    Ok(drive(alarm.within(Instant::now().checked_add(timeout), work), &alarm))
}

/// Fails on a thread where a wait would block an async task.
///
/// # Errors
///
/// [`BlockingError::InAsync`] inside an async task, and on a worker thread.
pub fn refuse_in_async<E>() -> Result<(), BlockingError<E>> {
    if is_worker_thread() || in_async_task() { Err(BlockingError::InAsync) } else { Ok(()) }
}

/// Whether this thread is polling a tokio task now.
///
/// The handle of a runtime proves nothing, because a thread of `spawn_blocking` has one too, and may block. But only a
/// task that is being polled has a cooperation budget that can run out.
fn in_async_task() -> bool {
    /// More than tokio grants a task for one poll.
    const MORE_THAN_A_BUDGET: usize = 256;

    if tokio::runtime::Handle::try_current().is_err() {
        return false;
    }
    let mut context = Context::from_waker(Waker::noop());
    // Dropping `_first` restores the budget that the loop below uses up.
    let Poll::Ready(_first) = poll_proceed(&mut context) else { return true };
    (0..MORE_THAN_A_BUDGET).any(|_| match poll_proceed(&mut context) {
        Poll::Ready(unit) => {
            unit.made_progress();
            false
        }
        Poll::Pending => true,
    })
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as a worker, where a blocking call would wait for itself.
pub fn mark_worker_thread() {
    IS_WORKER.set(true);
}

/// Whether this is the worker thread of any Main.
#[inline]
pub fn is_worker_thread() -> bool {
    IS_WORKER.get()
}

#[cfg(test)]
mod tests {
    use tokio::task::coop::has_budget_remaining;

    use super::*;

    #[tokio::test]
    async fn whoever_is_refused_in_a_task_has_its_budget_left() {
        for _ in 0..3 {
            assert!(matches!(refuse_in_async::<Infallible>(), Err(BlockingError::InAsync)));
            assert!(has_budget_remaining());
        }
    }
}

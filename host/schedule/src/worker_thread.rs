//! Which threads are worker threads: a wait on one would wait for itself.

use std::cell::Cell;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread: waiting on it would wait for itself.
pub fn mark_worker_thread() {
    IS_WORKER.set(true);
}

/// Whether this is the worker thread of any Main.
#[inline]
pub fn is_worker_thread() -> bool {
    IS_WORKER.get()
}

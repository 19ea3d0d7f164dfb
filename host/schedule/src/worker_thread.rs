//! Which threads are worker threads: a wait on one would wait for itself.

use std::cell::Cell;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Waiting on this thread would wait for itself.
pub fn mark_worker_thread() {
    IS_WORKER.set(true);
}

/// Whether this is a worker thread, of whichever Main.
#[inline]
pub fn is_worker_thread() -> bool {
    IS_WORKER.get()
}

//! What a crowd of apps, or one that misbehaves, costs the process. One test runs at a time, because all look at the
//! whole process.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

#[path = "../gateway/app.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod app;
mod churn;
mod memory;
#[path = "../../../../host/peer-socket/tests/alone/process.rs"]
mod process;
#[path = "../gateway/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod support;

use tokio::sync::{Mutex, MutexGuard};

/// Waits until no other test runs.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

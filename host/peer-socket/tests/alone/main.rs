//! What a crowd of programs, or one that misbehaves, costs the process. One test runs at a time, because all look at the
//! whole process.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod churn;
mod memory;
mod process;
#[path = "../peer_socket/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod support;

use tokio::sync::{Mutex, MutexGuard};

/// Waits until no other test runs.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

//! `weir new`, `build`, `dev` and `test`: for authors of extensions, hooks, apps and sidecars.
//!
//! A project is a directory with a `weir.toml`. These commands drive the tools of its language. `dev` and `test` also
//! start a Main of their own: `weir run` as a child process, which they ask through its control socket.

pub(super) mod build;
pub(super) mod dev;
mod go;
mod group;
pub(super) mod new;
mod private_main;
mod project;
mod section;
mod sources;
pub(super) mod test;
mod watch;

use crate::client::Signals;

/// A signal ended the command.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// Does the work until Ctrl-C or SIGTERM. Then drops it, with the processes that it started, and fails with
/// [`Interrupted`].
async fn until_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut signals = Signals::new()?;
    tokio::select! {
        done = work => done,
        _ = signals.next() => Err(Interrupted.into()),
    }
}

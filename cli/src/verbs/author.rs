//! `weir new`, `build`, `dev` and `test`: for authors of extensions, hooks, apps and sidecars.
//!
//! A project is a directory with a `weir.toml`. These commands drive the tools of its language. `dev` and `test` also
//! start a Main of their own: `weir run` as a child process, which they ask through its control socket.

mod adapt;
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

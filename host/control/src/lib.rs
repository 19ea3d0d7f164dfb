//! The control interface: HTTP/1 on a Unix socket, for `weir`, `curl` and the operator's programs.
//!
//! Owns the socket, the routes and their JSON. Knows nothing of the host's inside: Main's public handles do the work.
//! Runs on the worker thread, and ends after the last extension, so that clients get their answers and logs to the
//! end.
//!
//! ```no_run
//! # async fn embed() -> Result<(), Box<dyn std::error::Error>> {
//! use weir_control::ControlSocket;
//! use weir_host::{Config, Main};
//!
//! let socket = ControlSocket::bind("/run/weir/weir.sock".as_ref())?;
//! let config = weir_host::load("device.toml".as_ref())?;
//! let main = Main::builder(config).attach(|attached| socket.serve(attached)).start().await?;
//! # Ok(())
//! # }
//! ```

mod bodies;
mod contracts;
mod error;
mod openmetrics;
mod report;
mod routes;
mod server;
mod spans;
#[cfg(feature = "store")]
mod stores;
mod streams;
mod traffic;

pub use self::{
    openmetrics::{CLASSIC_METRICS, OPENMETRICS},
    server::ControlSocket,
};
pub use weir_sockets::{SocketError, is_released};

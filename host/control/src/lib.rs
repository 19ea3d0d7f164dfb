//! The control interface: HTTP/1 on a Unix socket, for the `weir` command, for `curl` and for any program of the
//! operator's.
//!
//! Owns the socket, the routes and what they look like in JSON. All that they do is done by Main's public handles, so it
//! knows nothing of the inside of the host. Runs on the worker thread beside the extensions, and ends after the last of
//! them: a client that waits for an answer or follows a log gets it to its end.
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

mod asker;
mod bodies;
mod error;
mod limits;
mod report;
mod routes;
mod server;
mod socket;
mod streams;
mod traffic;

pub use self::socket::{ControlSocket, SocketError};

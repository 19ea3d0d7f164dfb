//! The peer socket: a Unix socket through which programs outside Main are its peers.
//!
//! `docs/peer-protocol.md` says what is spoken. Knows nothing of the host's inside: a connection is a
//! [`Session`](weir_host::peers::Session), which has the grants and limits. Connections are
//! accepted on a thread of their own; those of programs that have proved their names are tasks of the worker thread.
//!
//! ```no_run
//! # async fn embed() -> Result<(), Box<dyn std::error::Error>> {
//! use weir_host::Main;
//! use weir_peer_socket::PeerSocket;
//!
//! let socket = PeerSocket::bind("/run/weir/peers.sock".as_ref())?;
//! let config = weir_host::load("device.toml".as_ref())?;
//! let main = Main::builder(config).attach(|attached| socket.serve(attached)).start().await?;
//! # Ok(())
//! # }
//! ```

mod connection;
mod greeting;
mod server;

pub use weir_sockets::SocketError;

pub use self::server::PeerSocket;

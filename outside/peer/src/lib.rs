//! A client for programs beside Weir's Main process, its peers: apps and sidecars that call, serve, publish, subscribe, and
//! share queues with extensions.
//!
//! Main must have a `main.peer-socket`, and a table `[peer."…"]` that grants what the program may do. `docs/peers.md` shows
//! both, and `docs/peer-protocol.md` specifies the protocol.
//!
//! ```no_run
//! use weir_peer::{Options, Peer};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new("app:player".parse()?).token(std::fs::read_to_string("player.token")?.trim());
//! let peer = Peer::connect("/run/weir/peers.sock", options).await?;
//!
//! let volume = peer.call("settings@1", "get", r#"{"key":"volume"}"#).await?;
//! println!("{}", String::from_utf8_lossy(&volume));
//!
//! let mut changes = peer.subscribe("settings.changed.>").await?;
//! while let Some(event) = changes.next().await {
//!     println!("{}: {} bytes", event.topic, event.payload.len());
//! }
//! println!("{}", peer.closed().await);
//! # Ok(())
//! # }
//! ```
//!
//! - **A session ends, and stays ended.** Then everything that waits fails with `peer-gone`, streams end, and
//!   [`Peer::closed`] says why. The client does not connect again by itself: a new session has to serve, subscribe and take
//!   anew, and only the program knows what that means.
//! - **Nothing is sent twice.** The client never repeats a call, an event or a job. After a `timeout` or `peer-gone` a request
//!   may have been carried out.
//! - **A dropped future is given up.** If that was a call, an event or a put, Main is told. An answer that comes after
//!   that is ignored.
//! - **Everything is bounded.** A sender waits while 256 KiB wait to be written. Main sends no more events, requests and jobs
//!   than [`Options`] and [`Queue::take`] let it.
//!
//! The client needs a tokio runtime with I/O and time. Programs without async code use [`blocking`]. Main uses this crate
//! without the feature `client`: then there is only [`frame`], the codec.
//!
//! Knows nothing of grants, routes or what a contract means.

pub mod frame;

#[cfg(feature = "client")]
pub mod blocking;
#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod events;
#[cfg(feature = "client")]
mod peer;
#[cfg(feature = "client")]
mod queue;
#[cfg(feature = "client")]
mod serve;
#[cfg(feature = "client")]
mod session;

pub use weir_names::{Error, HandlerError, NameError, PeerName, TraceContext, TraceContextError};

#[cfg(feature = "client")]
pub use self::{
    connect::{ConnectError, Options},
    events::{Event, Receipt, Subscription},
    peer::{Call, Ended, Peer},
    queue::{Job, Queue},
    serve::{Request, Requests},
};

/// The example of the crate's page compiles.
#[cfg(doctest)]
#[cfg(feature = "client")]
#[doc = include_str!("../README.md")]
struct Readme;

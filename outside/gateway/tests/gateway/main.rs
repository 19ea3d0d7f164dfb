//! The gateway of a real Main, with apps that behave and apps that do not.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

mod app;
mod batches;
mod calls;
mod connections;
mod ends;
mod events;
mod floods;
mod frames;
#[cfg(all(feature = "servers", feature = "tls"))]
mod http2;
mod login;
mod loss;
#[cfg(feature = "servers")]
mod own_sockets;
mod post;
mod queues;
#[cfg(feature = "servers")]
mod rude_servers;
mod served;
#[cfg(feature = "servers")]
mod servers;
mod stream_faults;
mod streams;
mod support;
#[cfg(feature = "tls")]
mod tls;
mod traces;

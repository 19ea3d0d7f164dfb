//! The channel as `weir:iec` has it, for an extension with a loop of its own.
//!
//! These are the bindings of `wit/iec.wit` and nothing else: an extension that uses only them holds
//! no other code of this crate. They reach Main from inside a component; anywhere else they panic.
//!
//! ```no_run
//! use weir_sdk::raw::channel::{self, Message};
//!
//! let first = channel::serve("echo@1", &["echo".to_owned()]).expect("`fulfills` lists `echo@1`");
//! let mut next = channel::receive();
//! while let Some(message) = next {
//!     next = match message {
//!         Message::Request(request) if request.operation == first => {
//!             channel::respond_and_receive(request.id, Ok(&request.payload)).expect("it is ours")
//!         }
//!         _ => channel::receive(),
//!     };
//! }
//! ```

pub use wasip2::io::poll;

pub use crate::bindings::{
    wasi::config::store as config,
    weir::iec::{channel, events, lifecycle, log, peers, requests, types},
};

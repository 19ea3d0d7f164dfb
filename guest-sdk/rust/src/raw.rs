//! The channel as `weir:iec` defines it, for an extension with a loop of its own.
//!
//! These are the bindings of `wit/iec.wit`: an extension that uses only them contains no other code of this
//! crate. They reach Main from inside a component, and panic anywhere else.
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
//!
//! One `receive_within` waits for the inbox, the queues and a time limit together:
//!
//! ```no_run
//! use weir_sdk::raw::{
//!     channel::{self, Message},
//!     queues::{self, Taking},
//! };
//!
//! # fn work(_: &[u8]) -> bool { true }
//! # fn at_intervals() {}
//! let uploads = queues::open("uploads").expect("`takes` lists `uploads`");
//! queues::take(uploads, Taking::OneByOne).expect("`takes` lists `uploads`");
//! loop {
//!     match channel::receive_within(1000) {
//!         Ok(Some(Message::Job(job))) => {
//!             if !work(&job.payload) {
//!                 queues::give_back(job.id).expect("it is in hand");
//!             }
//!             // Else the next receive marks it as done.
//!         }
//!         Ok(Some(_)) => {}
//!         Ok(None) => break,
//!         // The time has passed.
//!         Err(_) => at_intervals(),
//!     }
//! }
//! ```
//!
//! With small jobs, most of the time goes into calls to Main. An extension that only gets jobs can take and finish
//! many at once:
//!
//! ```no_run
//! use weir_sdk::raw::{
//!     channel::{self, BatchOrder, Message},
//!     queues::{self, Taking},
//! };
//!
//! # fn work(_: &[u8]) {}
//! let uploads = queues::open("uploads").expect("`takes` lists `uploads`");
//! loop {
//!     queues::take(uploads, Taking::Next(64)).expect("`in-flight` allows 64");
//!     let batch = channel::receive_batch(64, BatchOrder::AnyOrder, None).expect("it may be as large");
//!     if batch.is_empty() {
//!         break;
//!     }
//!     let mut done = Vec::new();
//!     for message in batch {
//!         if let Message::Job(job) = message {
//!             work(&job.payload);
//!             done.push(job.id);
//!         }
//!     }
//!     queues::done_all(&done).expect("they are in hand");
//! }
//! ```
//!
//! If the instance dies before it has finished its jobs, they come again: here, all jobs of the batch.

pub use wasip2::io::poll;

pub use crate::bindings::{
    wasi::config::store as config,
    weir::iec::{channel, events, lifecycle, log, peers, queues, requests, types},
};

//! Sends the HTTP requests of extensions and hooks.
//!
//! Owns the thread that sends, the connections, TLS, the judgement of grants, and the limits on requests. Knows nothing
//! of WebAssembly: an [`HttpClient`] takes ordinary requests and gives ordinary answers.

mod address;
mod admission;
mod body;
mod client;
mod config;
mod connect;
mod error;
mod exchange;
mod pool;
mod sender;

pub use self::{
    body::{BodyError, RequestBody, ResponseBody},
    client::{HttpClient, HttpGuest, Timeouts},
    config::HttpConfig,
    connect::{Resolve, Resolved},
    error::HttpError,
    sender::{HttpSender, NotStarted, OnEnd},
};

//! Sends the HTTP requests of extensions and hooks.
//!
//! Owns a thread for all of them, their connections, TLS, what each grant allows, and the limits on all of it. Knows
//! nothing of WebAssembly: a [`HttpClient`] is handed ordinary requests, and asked for ordinary answers.

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

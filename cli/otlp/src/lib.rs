//! Spans of Main as bodies of OTLP requests, and how far an export of them has come.
//!
//! This crate owns the translation of JSON into OpenTelemetry's messages, the place up to which spans are exported, and
//! the meaning of a collector's answer. It must not know of sockets, clocks, or the command line.

mod collector;
mod convert;
mod export;

pub use self::{
    collector::{PartialSuccess, Retry, Verdict, partial_success, retry_after, said},
    export::{AnswerError, Batch, Export, Resource, Taken},
};

//! Spans of Main as bodies of OTLP requests, and how far an export of them has come.
//!
//! It owns the translation of JSON into OpenTelemetry's messages, the place up to which spans are exported, and the
//! meaning of a collector's answer. It must not know of sockets, clocks, or the command line.

mod answer;
mod collector;
mod convert;
mod export;

pub use self::{
    answer::AnswerError,
    collector::{PartialSuccess, Retry, Verdict, partial_success, retry_after, said},
    export::{Batch, Export, Resource, Taken},
};

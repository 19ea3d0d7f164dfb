//! Spans of traces.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use weir_names::{ContractName, OperationName, QueueName, SpanId, Topic, TraceContext, TraceId};

use crate::{rfc3339_nanos, seconds, seconds_if_any};

/// What became of one sampled message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Span {
    /// Spans are numbered from 1 as they end.
    pub number: u64,
    /// Its trace.
    pub trace: TraceId,
    /// Its own number.
    pub span: SpanId,
    /// The span that it is part of; none for the first of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
    /// The span of another trace that has caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<TraceContext>,
    /// What it was.
    #[serde(flatten)]
    pub kind: SpanKind,
    /// The sender: an extension's id, a peer's name, or `main`. Empty if the peer is no longer known.
    pub caller: String,
    /// The receiver: an extension's id, a peer's name, or `main`. `None` for an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// When it was sent.
    #[serde(with = "rfc3339_nanos")]
    pub start: SystemTime,
    /// From the send to the outcome.
    #[serde(rename = "duration-seconds", with = "seconds")]
    pub duration: Duration,
    /// From the send until the receiver took it; `None` if it never did.
    #[serde(
        rename = "waited-seconds",
        default,
        skip_serializing_if = "Option::is_none",
        with = "seconds_if_any"
    )]
    pub waited: Option<Duration>,
    /// From when the receiver took it to the outcome; `None` if it never did.
    #[serde(
        rename = "worked-seconds",
        default,
        skip_serializing_if = "Option::is_none",
        with = "seconds_if_any"
    )]
    pub worked: Option<Duration>,
    /// Fuel that the receiver used meanwhile, for whatever it had in hand; `None` if it is no extension, or did not
    /// answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// `ok`, `cancelled` if the sender gave it up, `returned` for a job that went back, or the
    /// [case](weir_names::Error::case) of the error.
    pub outcome: Cow<'static, str>,
}

/// What one message was.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SpanKind {
    /// A request.
    Request {
        /// Its contract.
        contract: ContractName,
        /// Its operation.
        operation: OperationName,
    },
    /// One delivery of a job.
    Job {
        /// The queue that it waited in.
        queue: QueueName,
    },
    /// An event, until all subscriptions with room have it.
    Event {
        /// Where it was published.
        topic: Topic,
    },
    /// A kind that this version does not know, in an answer of another version of Main.
    #[serde(other)]
    Other,
}

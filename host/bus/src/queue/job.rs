//! One job of a queue.

use std::sync::Arc;

use bytes::Bytes;
use weir_names::QueueName;

use super::fate::Watched;
use crate::{
    id::{MessageId, PeerId},
    message::ENVELOPE_BYTES,
    trace::JobTrace,
};

/// One job.
#[derive(Clone, Debug)]
pub struct QueuedJob {
    /// Its number, for as long as Main runs.
    pub id: MessageId,
    /// The peer that put it.
    pub sender: PeerId,
    /// When it was put, as a [`moment`](weir_metrics::moment).
    pub at: u64,
    /// The work, in the queue's own encoding.
    pub payload: Bytes,
    /// How often it was delivered.
    pub deliveries: u32,
    /// The queue that delivered it too often, and how often.
    pub died_in: Option<Box<(QueueName, u32)>>,
    /// For a sender that waits until it is finished.
    pub(crate) fate: Option<Arc<Watched>>,
    /// For the spans of its deliveries, if it is sampled.
    pub(crate) traced: Option<Box<JobTrace>>,
}

impl QueuedJob {
    /// Whether its sender has taken it back.
    pub(super) fn is_given_up(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.is_given_up())
    }

    /// Whether it is too large for all readers. A dead letter stays whatever its size: it can be put back.
    pub(super) fn is_unfit(&self, max_payload: u64) -> bool {
        self.died_in.is_none() && self.payload.len() as u64 > max_payload
    }

    pub(super) fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + self.payload.len() as u64
    }
}

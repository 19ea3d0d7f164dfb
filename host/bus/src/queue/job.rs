//! One job of a queue.

use bytes::Bytes;
use tokio::time::Instant;
use weir_names::QueueName;

use crate::{
    id::{MessageId, PeerId},
    message::ENVELOPE_BYTES,
};

/// One job.
#[derive(Clone, Debug)]
pub struct QueuedJob {
    /// Its number, for as long as Main runs.
    pub id: MessageId,
    /// The peer that put it.
    pub sender: PeerId,
    /// When it was put.
    pub at: Instant,
    /// The work, in the queue's own encoding.
    pub payload: Bytes,
    /// How often it was delivered.
    pub deliveries: u32,
    /// The queue that delivered it too often, and how often.
    pub died_in: Option<Box<(QueueName, u32)>>,
}

impl QueuedJob {
    pub(super) fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + self.payload.len() as u64
    }
}

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
    pub id: MessageId,
    pub sender: PeerId,
    pub at: Instant,
    pub payload: Bytes,
    /// How often it was delivered.
    pub deliveries: u32,
    /// Where it was delivered too often, and how often.
    pub died_in: Option<(QueueName, u32)>,
}

impl QueuedJob {
    pub(super) fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + self.payload.len() as u64
    }
}

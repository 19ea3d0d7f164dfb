//! The message that a guest is at.

use weir_bus::{MessageId, PeerId};

/// The message that an instance was at when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handling {
    /// None of an event.
    pub message: Option<MessageId>,
    /// Of an event.
    pub sequence: Option<u64>,
    /// The peer that sent it.
    pub sender: PeerId,
    /// What it is, for people to read: the contract and the operation, the topic, or the queue.
    pub operation: String,
}

//! The message that a guest is at.

use weir_bus::{MessageId, PeerId};

/// The message that an instance was at when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handling {
    /// Its id; none for an event.
    pub message: Option<MessageId>,
    /// Its place in the topic, for an event.
    pub sequence: Option<u64>,
    /// The peer that sent it.
    pub sender: PeerId,
    /// For people to read: contract and operation, topic, or queue.
    pub operation: String,
}

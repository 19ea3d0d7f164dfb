//! What an operator sets of a queue.

use weir_names::QueuePolicy;

/// What an operator sets of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Jobs that wait and jobs in hand.
    pub messages: u32,
    /// The same in bytes.
    pub bytes: u64,
    /// What becomes of a job that finds no room.
    pub when_full: QueuePolicy,
    /// Deliveries after which a job that comes back is dead.
    pub max_deliveries: u32,
    /// Bytes of the largest payload that some extension takes.
    pub max_payload: u64,
}

//! What an operator sets for a queue.

use weir_names::{ContractName, QueuePolicy};

/// What an operator sets for a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// The most jobs, waiting and in hand.
    pub messages: u32,
    /// The most bytes, waiting and in hand.
    pub bytes: u64,
    /// What happens to a job that finds no room.
    pub when_full: QueuePolicy,
    /// Deliveries after which a job that comes back is dead.
    pub max_deliveries: u32,
    /// Bytes of the largest payload that any extension takes.
    pub max_payload: u64,
    /// The contract with the provider that keeps its jobs: a put is a request to that one, which puts them here.
    pub store: Option<ContractName>,
}

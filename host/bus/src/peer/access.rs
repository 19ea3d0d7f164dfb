//! What a peer may reach.

use weir_names::{ContractName, QueueName, TopicPattern};

use crate::inbox::LaneSettings;

/// What a peer may reach. Main itself has none of these bounds.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Contracts that it may own and serve.
    pub fulfills: Vec<ContractName>,
    /// Contracts that it may call.
    pub calls: Vec<ContractName>,
    /// Topics that it may publish to.
    pub publishes: Vec<TopicPattern>,
    /// The first that covers a pattern says how its events wait.
    pub subscribes: Vec<(TopicPattern, LaneSettings)>,
    /// Queues into which it may put.
    pub puts: Vec<QueueName>,
    /// Queues from which it may take.
    pub takes: Vec<QueueName>,
}

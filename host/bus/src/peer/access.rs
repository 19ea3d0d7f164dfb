//! What a peer may reach.

use weir_names::{CallGrant, ContractName, QueueName, TopicPattern};

use crate::inbox::LaneSettings;

/// What a peer may reach. Main has no such bounds.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Contracts that it may own and serve.
    pub fulfills: Vec<ContractName>,
    /// Contracts and operations that it may call.
    pub calls: Vec<CallGrant>,
    /// Topics that it may publish to.
    pub publishes: Vec<TopicPattern>,
    /// Topics that it may subscribe to. The first that covers a pattern says how its events wait.
    pub subscribes: Vec<(TopicPattern, LaneSettings)>,
    /// Queues that it may put into.
    pub puts: Vec<QueueName>,
    /// Queues that it may take from.
    pub takes: Vec<QueueName>,
}

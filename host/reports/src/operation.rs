//! What became of requests, by operation.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use weir_metrics::DurationsSnapshot;

/// What became of the requests for one operation.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct OperationStatus {
    /// The provider: an extension's id, the name of a peer, or `main`.
    pub provider: String,
    /// The contract. Empty for all operations above the bound of 256 for each provider.
    pub contract: String,
    /// The operation; `other` for those above the bound.
    pub operation: String,
    /// Requests that ended in an error, by its [case](weir_names::Error::case). Those refused before they were sent are
    /// included.
    pub failed: BTreeMap<Cow<'static, str>, u64>,
    /// From the send to the outcome, of each request that was sent, whatever the outcome. Requests that their sender gave
    /// up are left out.
    pub durations: DurationsSnapshot,
}

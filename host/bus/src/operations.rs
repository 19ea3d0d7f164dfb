//! What became of the requests to one provider, by operation.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use weir_metrics::Durations;
use weir_names::Error;
use weir_reports::OperationStatus;

use crate::id::OperationId;

/// How many operations of one provider get counts of their own, over all its instances. All others share one count.
const MAX_COUNTED: usize = 256;

/// The counts of each operation of one provider. They stay when its instances end.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    all: Mutex<Vec<Arc<OperationStats>>>,
    /// The counts of requests that a [canary](crate::Peer::set_canary) took. Those in `all` are without them.
    by_canary: Mutex<Vec<Arc<OperationStats>>>,
}

/// The counts of one operation.
#[derive(Debug, Default)]
pub struct OperationStats {
    /// None for the shared count of all operations above the bound.
    operation: Option<Arc<OperationId>>,
    durations: Arc<Durations>,
    failed: Mutex<BTreeMap<&'static str, u64>>,
}

impl Operations {
    /// Returns the counts of an operation for requests that a canary takes. Adds them if there are none yet.
    pub(crate) fn by_canary(&self, operation: &Arc<OperationId>) -> Arc<OperationStats> {
        // Those that share a count share one here, too.
        let operation = self.of(operation).operation.clone();
        let mut all = self.by_canary.lock();
        if let Some(stats) = all.iter().find(|stats| stats.operation == operation) {
            return stats.clone();
        }
        let stats = Arc::new(OperationStats { operation, ..OperationStats::default() });
        all.push(stats.clone());
        stats
    }

    /// Returns the counts of an operation. Adds them if there are none yet.
    pub(crate) fn of(&self, operation: &Arc<OperationId>) -> Arc<OperationStats> {
        let mut all = self.all.lock();
        let found = all.iter().find(|stats| stats.operation.as_ref().is_none_or(|own| own == operation));
        if let Some(stats) = found {
            return stats.clone();
        }
        let operation = (all.len() < MAX_COUNTED).then(|| operation.clone());
        let stats = Arc::new(OperationStats { operation, ..OperationStats::default() });
        all.push(stats.clone());
        stats
    }

    /// The counts of all requests.
    pub(crate) fn status(&self, provider: &str) -> Vec<OperationStatus> {
        let mut status = self.status_of(provider, false);
        for more in self.status_of(provider, true) {
            let is_same = |it: &&mut OperationStatus| {
                (&it.contract, &it.operation) == (&more.contract, &more.operation)
            };
            match status.iter_mut().find(is_same) {
                Some(sum) => sum.add(&more),
                None => status.push(more),
            }
        }
        status
    }

    /// The counts of requests that a canary took, or of all others.
    pub(crate) fn status_of(&self, provider: &str, by_canary: bool) -> Vec<OperationStatus> {
        let counts = if by_canary { &self.by_canary } else { &self.all };
        counts.lock().iter().map(|stats| stats.status(provider)).collect()
    }
}

impl OperationStats {
    /// Returns the durations of the requests for this operation.
    #[inline]
    pub fn durations(&self) -> &Arc<Durations> {
        &self.durations
    }

    /// Counts a request that ended in this error.
    pub(crate) fn count_failed(&self, error: &Error) {
        *self.failed.lock().entry(error.case()).or_default() += 1;
    }

    fn status(&self, provider: &str) -> OperationStatus {
        let (contract, operation) = match &self.operation {
            Some(operation) => (operation.contract.as_str(), operation.name.as_str()),
            None => ("", "other"),
        };
        OperationStatus {
            provider: provider.to_owned(),
            contract: contract.to_owned(),
            operation: operation.to_owned(),
            failed: self.failed.lock().iter().map(|(error, count)| ((*error).into(), *count)).collect(),
            durations: self.durations.snapshot(),
        }
    }
}

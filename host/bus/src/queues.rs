//! The shared queues of one Main, by name.
//!
//! Knows nothing of peers, or of which may put and take.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use parking_lot::RwLock;
use weir_names::{Error, QueueName};
use weir_reports::QueueStatus;

use crate::{
    bus::OnLoss,
    queue::{QueueSettings, SharedQueue},
};

/// Every queue that is or was configured.
#[derive(Debug, Default)]
pub(crate) struct Queues(RwLock<BTreeMap<QueueName, Arc<SharedQueue>>>);

impl Queues {
    /// Sets the queues, each with the queue that gets its dead letters. Queues that are not listed take no more jobs.
    pub(crate) fn configure(
        &self,
        queues: &[(QueueName, QueueSettings, Option<QueueName>)],
        on_loss: &Arc<OnLoss>,
    ) {
        let mut table = self.0.write();
        for (name, settings, _) in queues {
            let new = || SharedQueue::new(name.clone(), settings.clone(), on_loss.clone());
            table.entry(name.clone()).or_insert_with(new);
        }
        for (name, settings, dead_letter) in queues {
            let dead_letter = dead_letter.as_ref().and_then(|name| table.get(name));
            let dead_letter = dead_letter.map_or_else(Weak::new, Arc::downgrade);
            if let Some(queue) = table.get(name) {
                queue.set(settings.clone(), dead_letter);
            }
        }
        // Done after all queues are set, because one queue may get another's dead letters.
        for (name, ..) in queues {
            if let Some(queue) = table.get(name) {
                queue.bury_unfit();
            }
        }
        let is_configured = |name: &QueueName| queues.iter().any(|(configured, ..)| configured == name);
        for (_, queue) in table.iter().filter(|(name, _)| !is_configured(name)) {
            queue.close();
        }
    }

    /// Finds a queue that is configured or holds jobs, by name.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<SharedQueue>, Error> {
        let found = self.0.read().get(name).filter(|queue| queue.is_there()).cloned();
        found.ok_or_else(|| Error::Invalid(format!("no queue `{name}` is configured")))
    }

    /// Finds a queue by name, even one that is no longer configured.
    pub(crate) fn get(&self, name: &QueueName) -> Option<Arc<SharedQueue>> {
        self.0.read().get(name).cloned()
    }

    pub(crate) fn status(&self) -> Vec<QueueStatus> {
        let all: Vec<_> = self.0.read().values().filter(|queue| queue.is_there()).cloned().collect();
        all.iter().map(|queue| queue.status()).collect()
    }

    pub(crate) fn close(&self) {
        for queue in self.0.read().values() {
            queue.close();
        }
    }
}

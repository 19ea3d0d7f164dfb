//! Events of change: `store.changed.NAME`.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use async_channel::{Receiver, Sender, TrySendError};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;
use weir_bus::Bus;
use weir_store::{Changed, OnChange};

use crate::client::{Client, PublishOptions};

/// Changes of one store that may wait to be published: as many as one call can make.
const WAITING: usize = 4096;

/// The payload of an event.
#[derive(Serialize)]
struct ChangedEvent<'a> {
    key: &'a str,
    /// Absent in a shared store.
    #[serde(skip_serializing_if = "str::is_empty")]
    owner: &'a str,
    /// Whether the key has a value after the change.
    exists: bool,
}

/// The events of one store.
struct Events {
    /// Changes, each with how many were left out before it.
    changes: Sender<(Changed, u64)>,
    /// Changes left out since the last that had room. The next event says how many.
    lost: u64,
    lost_in_all: u64,
}

/// Publishes the changes of each store in their order, on the worker. A change without
/// room is left out, and counted: in the next event, and in the log at the 1st, 2nd, 4th, 8th and so on.
pub(super) fn publisher(bus: &Arc<Bus>, worker: Handle) -> OnChange {
    // Weak, because the bus has the stores.
    let bus = Arc::downgrade(bus);
    let stores = Mutex::new(HashMap::new());
    Arc::new(move |changed| {
        let mut stores = stores.lock();
        let events = stores.entry(changed.store.clone()).or_insert_with(|| Events::new(&bus, &worker));
        events.tell(changed);
    })
}

impl Events {
    fn new(bus: &Weak<Bus>, worker: &Handle) -> Self {
        let (changes, told) = async_channel::bounded(WAITING);
        if let Some(bus) = bus.upgrade() {
            // The task ends when the stores drop their publisher, which holds the sender.
            drop(worker.spawn(publish(Client::new(bus), told)));
        }
        Self { changes, lost: 0, lost_in_all: 0 }
    }

    fn tell(&mut self, changed: Changed) {
        match self.changes.try_send((changed, self.lost)) {
            Ok(()) => self.lost = 0,
            // Main is ending.
            Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full((Changed { store, .. }, _))) => {
                self.lost = self.lost.saturating_add(1);
                self.lost_in_all = self.lost_in_all.saturating_add(1);
                if self.lost_in_all.is_power_of_two() {
                    tracing::warn!(
                        "{} changes of store `{store}` were not published since Main's start: {WAITING} others waited",
                        self.lost_in_all
                    );
                }
            }
        }
    }
}

async fn publish(client: Client, changes: Receiver<(Changed, u64)>) {
    while let Ok((Changed { store, owner, key, exists, .. }, lost)) = changes.recv().await {
        let Ok(payload) = serde_json::to_vec(&ChangedEvent { key: &key, owner: &owner, exists }) else {
            continue;
        };
        let options = PublishOptions { lost, ..PublishOptions::default() };
        // Fails at the end of Main, and if a subscriber that blocks its publishers takes too long.
        if let Err(error) = client.publish_with(&format!("store.changed.{store}"), payload, options).await {
            tracing::debug!("a change of store `{store}` was not published: {error}");
        }
    }
}

//! What happens to extensions, as a stream for whoever embeds Main.

use serde::Serialize;
use tokio::sync::broadcast;

use crate::{
    names::ExtensionId,
    roster::{FailureRecord, State},
};

/// Events that a slow listener may lag behind.
pub(crate) const KEPT_EVENTS: usize = 1024;

/// Something that happened to an extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum MainEvent {
    /// It came into another state.
    State {
        /// The extension.
        extension: ExtensionId,
        /// The state before.
        from: State,
        /// The state now.
        to: State,
        /// Why, where there is more to say.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It failed.
    Failed(Box<FailureRecord>),
    /// Messages for it found no room in its inbox. Said at 1, 2, 4, 8 and so on of them, so that a
    /// flood of messages is no flood of these.
    Shed {
        /// The extension, or `main`.
        receiver: String,
        /// Messages that found no room since Main started.
        total: u64,
    },
    /// This listener was too slow: events passed unseen.
    Lagged {
        /// How many.
        missed: u64,
    },
}

/// A stream of [`MainEvent`]s from the moment it was asked for.
#[derive(Debug)]
pub struct MainEvents(pub(crate) broadcast::Receiver<MainEvent>);

impl MainEvents {
    /// The next event; none once Main has shut down.
    pub async fn next(&mut self) -> Option<MainEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(MainEvent::Lagged { missed }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

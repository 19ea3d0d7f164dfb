//! Events of Main and its extensions, as a stream.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};
use weir_names::ExtensionId;
use weir_reports::{ExtensionState, FailureRecord, VersionChange};

/// How many events a slow listener may lag behind before it misses some.
pub const KEPT_EVENTS: usize = 1024;

/// An event of an extension or of Main.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum MainEvent {
    /// An extension changed its state.
    State {
        /// The extension.
        extension: ExtensionId,
        /// The state before.
        from: ExtensionState,
        /// The state now.
        to: ExtensionState,
        /// Why, if there is more to say.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An extension failed.
    Failed(Box<FailureRecord>),
    /// A version of an extension was proven or refused.
    Version {
        /// The extension.
        extension: ExtensionId,
        /// What changed, and why.
        #[serde(flatten)]
        change: VersionChange,
    },
    /// An inbox or queue lost messages, nearly always for want of room. Sent when the total reaches or passes 1, 2, 4,
    /// 8 and so on, so that a flood of messages is no flood of events.
    Shed {
        /// The extension, `main`, or a queue, as in `queue uploads`.
        receiver: String,
        /// Messages lost since Main started.
        total: u64,
    },
    /// Main has begun to stop every extension, and will end.
    Stopping,
    /// Main reloads its configuration.
    Reloading,
    /// The reload is done, or was refused.
    Reloaded,
    /// This listener was too slow and missed events.
    Lagged {
        /// How many events this listener missed.
        missed: u64,
    },
}

/// A stream of the [`MainEvent`]s since the call that made it.
#[derive(Debug)]
pub struct MainEvents(UntilEnded<Arc<MainEvent>>);

impl MainEvents {
    /// Makes the stream of what `said` receives, until `ended` closes because Main has ended.
    pub fn new(said: broadcast::Receiver<Arc<MainEvent>>, ended: async_channel::Receiver<()>) -> Self {
        Self(UntilEnded::new(said, ended))
    }

    /// Waits for the next event. Returns none once Main has ended and all earlier events are read. Dropping the future
    /// loses no event.
    pub async fn next(&mut self) -> Option<MainEvent> {
        Some(match self.0.next().await? {
            Ok(event) => Arc::unwrap_or_clone(event),
            Err(missed) => MainEvent::Lagged { missed },
        })
    }
}

/// A broadcast that ends with Main, although handles that outlive Main keep its channel open.
#[derive(Debug)]
pub struct UntilEnded<T> {
    said: broadcast::Receiver<T>,
    ended: async_channel::Receiver<()>,
}

impl<T: Clone> UntilEnded<T> {
    /// Makes a stream of what `said` receives, until `ended` closes because Main has ended.
    pub fn new(said: broadcast::Receiver<T>, ended: async_channel::Receiver<()>) -> Self {
        Self { said, ended }
    }

    /// Waits for the next item, or for the number of items that this receiver missed. Returns none at the end.
    pub async fn next(&mut self) -> Option<Result<T, u64>> {
        tokio::select! {
            biased;
            said = self.said.recv() => match said {
                Ok(said) => Some(Ok(said)),
                Err(RecvError::Lagged(missed)) => Some(Err(missed)),
                Err(RecvError::Closed) => None,
            },
            // The last items may have come after `recv` was polled above and before the end.
            _ended = self.ended.recv() => match self.said.try_recv() {
                Ok(said) => Some(Ok(said)),
                Err(TryRecvError::Lagged(missed)) => Some(Err(missed)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_said_before_the_end_is_read_and_then_the_stream_ends() {
        let (say, said) = broadcast::channel(2);
        let (ending, ended) = async_channel::bounded(1);
        let mut stream = UntilEnded::new(said, ended);
        for number in 1..=3 {
            say.send(number).unwrap();
        }
        drop(ending);
        assert_eq!(stream.next().await, Some(Err(1)));
        assert_eq!(stream.next().await, Some(Ok(2)));
        assert_eq!(stream.next().await, Some(Ok(3)));
        assert_eq!(stream.next().await, None);
        drop(say);
    }

    #[tokio::test]
    async fn the_end_wakes_whoever_waits_while_others_could_still_speak() {
        let (say, said) = broadcast::channel::<u32>(2);
        let (ending, ended) = async_channel::bounded(1);
        let waiting = tokio::spawn(async move { UntilEnded::new(said, ended).next().await });
        tokio::task::yield_now().await;
        drop(ending);
        assert_eq!(waiting.await.unwrap(), None);
        drop(say);
    }
}

//! What happens to extensions, as a stream for whoever embeds Main.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};
use weir_names::ExtensionId;

use crate::roster::{ExtensionState, FailureRecord};

/// Events that a slow listener may lag behind.
pub const KEPT_EVENTS: usize = 1024;

/// Something that happened to an extension, or to Main.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum MainEvent {
    /// It came into another state.
    State {
        /// The extension.
        extension: ExtensionId,
        /// The state before.
        from: ExtensionState,
        /// The state now.
        to: ExtensionState,
        /// Why, where there is more to say.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It failed.
    Failed(Box<FailureRecord>),
    /// Messages found no room in an inbox, or jobs in a queue. Said at 1, 2, 4, 8 and so on of them, so that
    /// a flood of messages is no flood of these.
    Shed {
        /// The extension, or `main`; of a queue, as in `queue uploads`.
        receiver: String,
        /// Messages that found no room since Main started.
        total: u64,
    },
    /// Main has begun to stop every extension, and ends when they have ended.
    Stopping,
    /// Main reads its configuration anew and applies it.
    Reloading,
    /// That is done, or was refused.
    Reloaded,
    /// This listener was too slow: events passed unseen.
    Lagged {
        /// How many.
        missed: u64,
    },
}

/// A stream of [`MainEvent`]s from the moment it was asked for.
#[derive(Debug)]
pub struct MainEvents(pub UntilEnded<Arc<MainEvent>>);

impl MainEvents {
    /// The next event; none once Main has ended and all that came before has been read. Dropping the
    /// future loses none.
    pub async fn next(&mut self) -> Option<MainEvent> {
        Some(match self.0.next().await? {
            Ok(event) => Arc::unwrap_or_clone(event),
            Err(missed) => MainEvent::Lagged { missed },
        })
    }
}

/// What Main says, for as long as it lives: handles that outlive it keep the channel itself open.
#[derive(Debug)]
pub struct UntilEnded<T> {
    said: broadcast::Receiver<T>,
    ended: async_channel::Receiver<()>,
}

impl<T: Clone> UntilEnded<T> {
    /// `ended` closes when Main has ended.
    pub fn new(said: broadcast::Receiver<T>, ended: async_channel::Receiver<()>) -> Self {
        Self { said, ended }
    }

    /// The next that was said, or how many passed unseen.
    pub async fn next(&mut self) -> Option<Result<T, u64>> {
        tokio::select! {
            biased;
            said = self.said.recv() => match said {
                Ok(said) => Some(Ok(said)),
                Err(RecvError::Lagged(missed)) => Some(Err(missed)),
                Err(RecvError::Closed) => None,
            },
            // The last words may have come just before the end, and after the look above.
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

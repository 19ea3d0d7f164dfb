use std::{
    future::{Ready, ready},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use weir_peer::{Error, Peer};

/// A session with Main. It ends with the session: then everything fails, and the program makes a new one.
#[derive(Clone, Debug)]
pub struct Connection {
    peer: Peer,
    timeout: Option<Duration>,
    provider: Option<String>,
}

impl Connection {
    /// The connection of a session.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self { peer, timeout: None, provider: None }
    }

    fn peer(&self) -> Ready<Result<Peer, Error>> {
        ready(Ok(self.peer.clone()))
    }

    async fn events<T>(
        &self,
        pattern: &str,
        read: fn(&[u8]) -> Result<T, Error>,
    ) -> Result<Events<T>, Error> {
        Ok(Events { subscription: self.peer.subscribe(pattern).await?, read })
    }
}

/// Events of a subscription. Dropped, it ends the subscription.
#[derive(Debug)]
#[must_use = "dropped, it ends the subscription"]
pub struct Events<T> {
    subscription: weir_peer::Subscription,
    read: fn(&[u8]) -> Result<T, Error>,
}

impl<T> Events<T> {
    /// The next event. None when the session has ended, or the operator has taken the grant back. A future that is
    /// dropped loses no event.
    ///
    /// # Errors
    /// An event that does not fit the contract. Further ones follow.
    pub async fn next(&mut self) -> Option<Result<Event<T>, Error>> {
        let event = self.subscription.next().await?;
        Some(Event::read(event, self.read))
    }
}

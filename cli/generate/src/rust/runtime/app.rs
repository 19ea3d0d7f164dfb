use std::{
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::Mutex, time::sleep};
use weir_peer::{Error, Options, Peer, Subscription};

/// The first wait before a subscription is tried again, and the longest one. Each is twice as long as the one before.
const WAITS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));

/// A connection with Main that begins a new session when one has ended.
///
/// It never repeats a call: one under way at a break fails with [`Error::PeerGone`], and may have been carried out.
/// Subscriptions are made again, and tell of the gap.
#[derive(Clone, Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    timeout: Option<Duration>,
    provider: Option<String>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    options: Options,
    session: Mutex<Option<Peer>>,
}

impl Connection {
    /// A connection to the socket that `main.peer-socket` names. The first use connects.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, options: Options) -> Self {
        let shared = Shared { path: path.into(), options, session: Mutex::default() };
        Self { shared: Arc::new(shared), timeout: None, provider: None }
    }

    /// The session, or a new one if there is none.
    ///
    /// # Errors
    /// With the code `no-connection`, if Main cannot be reached or refuses. Nothing was sent.
    pub async fn peer(&self) -> Result<Peer, Error> {
        let mut session = self.shared.session.lock().await;
        if let Some(peer) = &*session
            && peer.ended().is_none()
        {
            return Ok(peer.clone());
        }
        let peer = Peer::connect(&self.shared.path, self.shared.options.clone()).await;
        let peer = peer.map_err(|error| Error::handler("no-connection", error))?;
        *session = Some(peer.clone());
        Ok(peer)
    }

    async fn events<T>(
        &self,
        pattern: &str,
        read: fn(&[u8]) -> Result<T, Error>,
    ) -> Result<Events<T>, Error> {
        let peer = self.peer().await?;
        let subscription = peer.subscribe(pattern).await?;
        let source = Some((peer, subscription));
        Ok(Events { connection: self.clone(), pattern: pattern.to_owned(), source, is_over: false, read })
    }
}

/// What a subscription tells.
#[derive(Clone, Debug)]
pub enum Update<T> {
    /// An event.
    Event(Event<T>),
    /// The connection was gone, and is there again. Events may be missing: read the state anew.
    Gap,
}

/// Events of a subscription, over all sessions. Dropped, it ends the subscription.
#[derive(Debug)]
#[must_use = "dropped, it ends the subscription"]
pub struct Events<T> {
    connection: Connection,
    pattern: String,
    source: Option<(Peer, Subscription)>,
    is_over: bool,
    read: fn(&[u8]) -> Result<T, Error>,
}

impl<T> Events<T> {
    /// The next event, or that some may be missing. None when the operator has taken the grant back. A future that is
    /// dropped loses no event.
    ///
    /// # Errors
    /// An event that does not fit the contract; further ones follow. Or the subscription is refused after a break; then
    /// it is over.
    pub async fn next(&mut self) -> Option<Result<Update<T>, Error>> {
        if let Some((peer, subscription)) = &mut self.source {
            if let Some(event) = subscription.next().await {
                return Some(Event::read(event, self.read).map(Update::Event));
            }
            self.is_over = peer.ended().is_none();
            self.source = None;
        }
        if self.is_over {
            return None;
        }
        let outcome = self.again().await;
        self.is_over = outcome.is_err();
        Some(outcome.map(|()| Update::Gap))
    }

    /// Subscribes again, once Main can be reached.
    async fn again(&mut self) -> Result<(), Error> {
        let (mut wait, longest) = WAITS;
        loop {
            match self.subscribe().await {
                Err(error) if error == Error::PeerGone || error.code() == "no-connection" => sleep(wait).await,
                outcome => return outcome,
            }
            wait = longest.min(wait * 2);
        }
    }

    async fn subscribe(&mut self) -> Result<(), Error> {
        let peer = self.connection.peer().await?;
        let subscription = peer.subscribe(&self.pattern).await?;
        self.source = Some((peer, subscription));
        Ok(())
    }
}

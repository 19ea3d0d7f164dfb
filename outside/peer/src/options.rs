//! What a peer says of itself when it connects.

use std::fmt;

use weir_names::PeerName;

/// What a peer says of itself when it connects.
#[derive(Clone)]
pub struct Options {
    pub(crate) name: PeerName,
    pub(crate) token: Option<String>,
    pub(crate) requests: u32,
    pub(crate) events: u32,
}

impl Options {
    /// The peer of that name. Without a token Main knows it by the user that the program runs as.
    #[must_use]
    pub fn new(name: PeerName) -> Self {
        Self { name, token: None, requests: 64, events: 256 }
    }

    /// The token that `weir peers token` printed. At most 255 bytes.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Most requests that wait or are in hand, over all contracts that the session serves. 64 by default; with 0 none
    /// come.
    #[must_use]
    pub fn requests(mut self, requests: u32) -> Self {
        self.requests = requests;
        self
    }

    /// Most events that have come and not been read, over all subscriptions of the session. 256 by default; with 0 none
    /// come. Main keeps further ones, by the policy of their subscription.
    #[must_use]
    pub fn events(mut self, events: u32) -> Self {
        self.events = events;
        self
    }
}

/// Without the token.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("name", &self.name)
            .field("requests", &self.requests)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

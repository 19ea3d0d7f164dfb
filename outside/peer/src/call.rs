//! A call with its options.

use std::time::Duration;

use bytes::Bytes;
use weir_names::Error;

use crate::{
    Peer,
    frame::FromPeer,
    peer::{check_contract, check_operation, check_receiver, milliseconds},
};

/// A call of an operation, before it is sent: [`Peer::operation`].
#[derive(Clone, Copy, Debug)]
#[must_use = "`send` sends it"]
pub struct Call<'c> {
    peer: &'c Peer,
    contract: &'c str,
    operation: &'c str,
    provider: Option<&'c str>,
    timeout: Option<Duration>,
}

impl<'c> Call<'c> {
    pub(crate) fn new(peer: &'c Peer, contract: &'c str, operation: &'c str) -> Self {
        Self { peer, contract, operation, provider: None, timeout: None }
    }

    /// Calls this extension, this peer or `main`, in place of the owner of the contract.
    pub fn provider(mut self, provider: &'c str) -> Self {
        self.provider = Some(provider);
        self
    }

    /// The time for the answer, in place of the operator's `request-timeout`. From 1 ms to 49 days.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends it, and waits for the answer. If the future is dropped, the call is given up.
    ///
    /// # Errors
    /// Every case of [`Error`]. After [`Error::Timeout`] and [`Error::PeerGone`] the request may have been carried out.
    pub async fn send(self, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        let Self { peer, contract, operation, provider, timeout } = self;
        check_contract(contract)?;
        check_operation(operation)?;
        provider.map_or(Ok(()), check_receiver)?;
        let (timeout_ms, payload) = (milliseconds(timeout), payload.into());
        let size = payload.len();
        peer.handle()
            .ask(size, |id| FromPeer::Call { id, timeout_ms, contract, operation, provider, payload })
            .await
    }
}

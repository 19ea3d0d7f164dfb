//! Peers: how they come, change and go.

use std::sync::Arc;

use weir_names::{ContractName, Error, ExtensionId};

use super::Bus;
use crate::{
    id::PeerId,
    peer::{Access, Peer, PeerLimits, Phase},
};

impl Bus {
    /// Adds an extension as a peer that is down, as the owner of what it may fulfil; or as a copy of
    /// another.
    pub fn add_peer(
        &self,
        id: &ExtensionId,
        limits: PeerLimits,
        access: Access,
        copy_of: Option<&Peer>,
    ) -> Arc<Peer> {
        self.owners.add(id, limits, access, copy_of)
    }

    /// A renewed peer takes the place of the one with its number: whoever looks finds it, and what it may
    /// no longer subscribe to ends. It owns what it fulfils from now on, but for what another has come to
    /// own, where it does not `claim` that.
    pub fn hand_over(&self, peer: &Arc<Peer>, claim: bool) {
        self.owners.replace(peer, claim);
        self.renew_subscriptions(peer);
    }

    /// The same for one that may have to give its place back to the one before. What it may not subscribe to is
    /// kept from it, and ends with [`renew_subscriptions`](Self::renew_subscriptions).
    pub fn hand_over_on_trial(&self, peer: &Arc<Peer>) {
        self.owners.replace(peer, true);
        if peer.shares_inbox() {
            // What is kept from one would be kept from all of them.
            self.renew_subscriptions(peer);
        } else {
            self.hold_subscriptions(peer);
        }
    }

    /// An extension is no longer configured: it owns nothing.
    pub fn retire(&self, peer: &Peer) {
        self.owners.disown(peer);
        peer.set_phase(Phase::Down);
    }

    /// Nobody will read on, unless somebody else serves its inbox: subscriptions end, and whoever waits for
    /// an answer hears it now.
    pub fn forget(&self, peer: &Peer) {
        if !peer.inbox().is_served() {
            self.unsubscribe_all(peer);
            peer.inbox().clear(peer.seat());
        }
    }

    /// Main serves `contract` from now on, unless an extension owns it.
    pub fn serve_from_main(&self, contract: &ContractName, operations: &[String]) -> Result<(), Error> {
        self.main().serve(contract.as_str(), operations)?;
        self.owners.serve_from_main(contract.clone());
        Ok(())
    }

    /// Main itself, as a peer.
    #[inline]
    pub fn main(&self) -> &Arc<Peer> {
        self.owners.main()
    }

    /// The peer of this number.
    pub fn peer(&self, id: PeerId) -> Option<Arc<Peer>> {
        self.owners.get(id)
    }

    /// The peer that answers a request, with the version of the owners for which that holds.
    pub(crate) fn route(
        &self,
        contract: &ContractName,
        provider: Option<&str>,
    ) -> Result<(Arc<Peer>, u64), Error> {
        self.owners.find(contract, provider)
    }

    /// All that serve the inbox of this peer.
    pub(crate) fn servers(&self, owner: &Arc<Peer>) -> Vec<Arc<Peer>> {
        let copies = owner.copies();
        let copies = copies.into_iter().filter_map(|id| self.peer(id));
        std::iter::once(owner.clone()).chain(copies).collect()
    }
}

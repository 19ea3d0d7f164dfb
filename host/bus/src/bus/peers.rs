//! How peers come, change and go.

use std::sync::Arc;

use weir_names::{ContractName, Error, ExtensionId};

use super::Bus;
use crate::{
    id::PeerId,
    peer::{Access, Peer, PeerLimits, Phase},
};

impl Bus {
    /// Adds an extension as a peer that is down: the owner of what it may fulfil, or a copy of another peer.
    pub fn add_peer(
        &self,
        id: &ExtensionId,
        limits: PeerLimits,
        access: Access,
        copy_of: Option<&Peer>,
    ) -> Arc<Peer> {
        self.owners.add(id, limits, access, copy_of)
    }

    /// A renewed peer replaces the one with its number. Subscriptions that it may not have end. It owns what it fulfils
    /// from now on; with `claim` even what another peer has come to own.
    pub fn hand_over(&self, peer: &Arc<Peer>, claim: bool) {
        self.owners.replace(peer, claim);
        self.renew_subscriptions(peer);
    }

    /// As [`hand_over`](Self::hand_over), for a peer that may have to give its place back. Subscriptions that it may
    /// not have are held, and end with [`renew_subscriptions`](Self::renew_subscriptions).
    pub fn hand_over_on_trial(&self, peer: &Arc<Peer>) {
        self.owners.replace(peer, true);
        if peer.shares_inbox() {
            // Peers that share an inbox cannot be held apart.
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

    /// The peer reads no more. Unless another serves its inbox, its subscriptions end, and waiting callers hear it now.
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

    /// The peer with this number.
    pub fn peer(&self, id: PeerId) -> Option<Arc<Peer>> {
        self.owners.get(id)
    }

    /// The peer that answers a request, and the version of the owners for which that holds.
    pub(crate) fn route(
        &self,
        contract: &ContractName,
        provider: Option<&str>,
    ) -> Result<(Arc<Peer>, u64), Error> {
        self.owners.find(contract, provider)
    }

    /// All peers that serve this peer's inbox.
    pub(crate) fn servers(&self, owner: &Arc<Peer>) -> Vec<Arc<Peer>> {
        let copies = owner.copies();
        let copies = copies.into_iter().filter_map(|id| self.peer(id));
        std::iter::once(owner.clone()).chain(copies).collect()
    }
}

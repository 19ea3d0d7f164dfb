//! How peers come, change and go.

use std::sync::Arc;

use weir_names::{ContractName, Error, ExtensionId, OperationName, PeerName};
use weir_reports::OperationStatus;

use super::Bus;
use crate::{
    id::{PeerId, parsed},
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

    /// Replaces the peer of the same number by `peer`, made with [`Peer::renewed`]. Subscriptions without a grant end.
    /// `peer` owns the contracts that it fulfils, unless another peer owns them by now; with `claim` it owns those too.
    pub fn replace(&self, peer: &Arc<Peer>, claim: bool) {
        self.owners.replace(peer, claim);
        self.renew_subscriptions(peer);
    }

    /// Replaces the peer of the same number on trial, and claims its contracts. Subscriptions without a grant get no
    /// events until [`renew_subscriptions`](Self::renew_subscriptions) ends them, or the former peer comes back. If
    /// the peer shares its inbox, they end at once.
    pub fn replace_on_trial(&self, peer: &Arc<Peer>) {
        self.owners.replace(peer, true);
        if peer.shares_inbox() {
            // Copies share one inbox, so a subscription cannot be held for one of them alone.
            self.renew_subscriptions(peer);
        } else {
            self.hold_subscriptions(peer);
        }
    }

    /// Makes an extension that is no longer configured own no contracts, and sets its phase to down.
    pub fn retire(&self, peer: &Peer) {
        self.owners.disown(peer);
        peer.set_phase(Phase::Down);
    }

    /// Drops a [retired](Self::retire) and [disconnected](Self::disconnect) extension but for its name, which its messages
    /// may still need. Its counts go, too.
    pub fn forget(&self, peer: &Peer) {
        self.owners.forget(peer);
    }

    /// Ends the subscriptions of a peer that reads no more, and answers callers that wait for it with `peer-gone`. Does
    /// nothing while this peer or another one that shares its inbox takes requests.
    pub fn disconnect(&self, peer: &Peer) {
        if !peer.inbox().is_served() {
            self.unsubscribe_all(peer);
            peer.inbox().clear(peer.seat());
        }
    }

    /// Sets what programs under a name may reach, including those connected now. Returns the name as a peer that is
    /// down: it owns the contracts that its programs may serve, until one of them serves them.
    ///
    /// Fails with [`Error::LimitExceeded`] for more than 4096 names.
    pub fn add_name(&self, name: &PeerName, access: Access) -> Result<Arc<Peer>, Error> {
        let known = self.owners.name(name, access)?;
        for session in self.owners.sessions(&known) {
            self.renew_subscriptions(&session);
        }
        self.providers_changed.notify_one();
        Ok(known)
    }

    /// Adds a program that arrives under a name. Returns its peer, which serves nothing yet.
    pub fn arrive(&self, name: &Peer, limits: PeerLimits) -> Arc<Peer> {
        self.owners.arrive(name, limits)
    }

    /// Makes a program serve a contract from now on. Fails if it may not, or if another peer owns the contract.
    pub fn serve(&self, session: &Arc<Peer>, contract: &str, operations: &[String]) -> Result<(), Error> {
        self.owners.serve(session, parsed(contract)?, operations)?;
        self.providers_changed.notify_one();
        Ok(())
    }

    /// Removes a program that leaves. What waits for it is answered `peer-gone`, its subscriptions end, and what it
    /// served has no provider.
    pub fn leave(&self, session: &Peer) {
        let has_served = self.owners.leave(session);
        self.unsubscribe_all(session);
        session.inbox().clear(session.seat());
        session.end_instance();
        if has_served {
            self.providers_changed.notify_one();
        }
    }

    /// Whether a program serves a contract that it may serve no more.
    pub fn serves_beyond_grants(&self, session: &Peer) -> bool {
        session.serves().iter().any(|contract| session.may_serve(contract).is_err())
    }

    /// Whether a peer other than Main owns this contract and is ready.
    pub fn is_served(&self, contract: &ContractName) -> bool {
        self.owners.is_served(contract)
    }

    /// The peer that owns this contract, whether or not it runs, or else Main if it serves the contract.
    pub fn owner_of(&self, contract: &ContractName) -> Option<Arc<Peer>> {
        self.owners.find(contract, None).ok().map(|(owner, _)| owner)
    }

    /// The operations that `peer` may call now: those of its grants that a peer serves. Empty for Main, which needs no
    /// grants.
    pub fn callable(&self, peer: &Peer) -> Vec<(ContractName, OperationName)> {
        let mut callable = Vec::new();
        for grant in peer.call_grants() {
            let Some(owner) = self.owner_of(&grant.contract) else { continue };
            let operations = self.server(&owner).operations_of(&grant.contract);
            let granted = operations.into_iter().filter(|operation| grant.allows(&grant.contract, operation));
            callable.extend(granted.map(|operation| (grant.contract.clone(), operation)));
        }
        callable.sort();
        callable.dedup();
        callable
    }

    /// What became of the requests for each operation that was ever asked for while its provider served it. Beyond a
    /// bound, the operations of one provider share an entry.
    pub fn operations(&self) -> Vec<OperationStatus> {
        let providers = self.owners.providers();
        providers.iter().flat_map(|peer| peer.operations().status(peer.name())).collect()
    }

    /// What became of the requests to this provider, and to its earlier versions, by operation: either of those that a
    /// [canary](Peer::set_canary) took, or of all others.
    pub fn operations_of(&self, provider: &Peer, by_canary: bool) -> Vec<OperationStatus> {
        provider.operations().status_of(provider.name(), by_canary)
    }

    /// Waits until, since the last call, a program has begun or stopped serving a contract, or a name of programs was
    /// set.
    pub async fn providers_changed(&self) {
        self.providers_changed.notified().await;
    }

    /// Makes Main serve `contract` from now on, for as long as no other peer owns it.
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

    /// All peers that serve this peer's inbox.
    pub(crate) fn servers(&self, original: &Arc<Peer>) -> Vec<Arc<Peer>> {
        let copies = original.copies();
        let copies = copies.into_iter().filter_map(|id| self.peer(id));
        std::iter::once(original.clone()).chain(copies).collect()
    }
}

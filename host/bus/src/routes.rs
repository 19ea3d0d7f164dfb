//! Who is there, and who owns which contract.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use weir_names::{ContractName, ExtensionId, MAIN};

use super::{Access, Bus, Error, Peer, PeerId, PeerLimits, Phase};

/// Peers by number and by name, and contracts by owner.
#[derive(Debug)]
pub(super) struct Routes {
    main: Arc<Peer>,
    table: RwLock<Table>,
    /// Raised when peers or owners change: what was looked up before may lead elsewhere now.
    version: AtomicU64,
}

#[derive(Debug)]
struct Table {
    /// Every peer; its number is its place.
    peers: Vec<Arc<Peer>>,
    owners: HashMap<ContractName, Arc<Peer>>,
    /// Contracts that Main itself serves, for those that have no owner.
    of_main: Vec<ContractName>,
}

impl Routes {
    pub(super) fn new(main_limits: PeerLimits) -> Self {
        let main = Arc::new(Peer::new(PeerId::MAIN, MAIN.into(), main_limits, None));
        main.set_phase(Phase::Ready);
        let table = Table { peers: vec![main.clone()], owners: HashMap::new(), of_main: Vec::new() };
        Self { main, table: RwLock::new(table), version: AtomicU64::new(0) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be said while the table is held, so that nobody takes the old for the new.
    fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

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
        let mut table = self.routes.write();
        let number = PeerId(u32::try_from(table.peers.len()).unwrap_or(u32::MAX));
        let name = id.shared();
        let peer = Arc::new(match copy_of {
            None => Peer::new(number, name, limits, Some(access)),
            Some(original) => Peer::copy(number, name, limits, access, original),
        });
        let fulfills = peer.fulfills().to_vec();
        table.peers.push(peer.clone());
        table.owners.extend(fulfills.into_iter().map(|contract| (contract, peer.clone())));
        self.routes.changed();
        peer
    }

    /// A renewed peer takes the place of the one with its number: whoever looks finds it, and what it may
    /// no longer subscribe to ends. It owns what it fulfils from now on, but for what another has come to
    /// own, where it does not `claim` that.
    pub fn hand_over(&self, peer: &Arc<Peer>, claim: bool) {
        self.put_in_place(peer, claim);
        self.renew_subscriptions(peer);
    }

    /// The same for one that may have to give its place back to the one before. What it may not subscribe to is
    /// kept from it, and ends with [`renew_subscriptions`](Self::renew_subscriptions).
    pub fn hand_over_on_trial(&self, peer: &Arc<Peer>) {
        self.put_in_place(peer, true);
        if peer.shares_inbox() {
            // What is kept from one would be kept from all of them.
            self.renew_subscriptions(peer);
        } else {
            self.hold_subscriptions(peer);
        }
    }

    fn put_in_place(&self, peer: &Arc<Peer>, claim: bool) {
        let mut table = self.routes.write();
        let place = usize::try_from(peer.id().0).ok().and_then(|place| table.peers.get_mut(place));
        let before = place.map(|place| std::mem::replace(place, peer.clone()));
        for contract in before.iter().flat_map(|before| before.fulfills()) {
            if table.owners.get(contract).is_some_and(|owner| owner.id() == peer.id()) {
                table.owners.remove(contract);
            }
        }
        for contract in peer.fulfills() {
            if claim || !table.owners.contains_key(contract) {
                table.owners.insert(contract.clone(), peer.clone());
            }
        }
        self.routes.changed();
    }

    /// An extension is no longer configured: it owns nothing.
    pub fn retire(&self, peer: &Peer) {
        let mut table = self.routes.write();
        table.owners.retain(|_, owner| owner.id() != peer.id());
        self.routes.changed();
        drop(table);
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

    /// All that serve the inbox of this peer.
    pub(super) fn servers(&self, owner: &Arc<Peer>) -> Vec<Arc<Peer>> {
        let copies = owner.copies();
        let copies = copies.into_iter().filter_map(|id| self.peer(id));
        std::iter::once(owner.clone()).chain(copies).collect()
    }

    pub(super) fn routes_version(&self) -> u64 {
        self.routes.version.load(Ordering::Acquire)
    }

    /// Main serves `contract` from now on, unless an extension owns it.
    pub fn serve_from_main(&self, contract: &ContractName, operations: &[String]) -> Result<(), Error> {
        self.main().serve(contract.as_str(), operations)?;
        self.routes.write().of_main.push(contract.clone());
        Ok(())
    }

    pub fn main(&self) -> &Arc<Peer> {
        &self.routes.main
    }

    pub(super) fn peer_named(&self, name: &str) -> Option<PeerId> {
        self.routes.read().peers.iter().find(|peer| peer.name() == name).map(|peer| peer.id())
    }

    pub fn peer(&self, id: PeerId) -> Option<Arc<Peer>> {
        self.routes.read().peers.get(usize::try_from(id.0).ok()?).cloned()
    }

    /// Who answers a request: the named peer, else the owner of the contract, else Main's own
    /// handler, else an error at once. With the version of the routes for which that holds.
    pub(super) fn route(
        &self,
        contract: &ContractName,
        provider: Option<&str>,
    ) -> Result<(Arc<Peer>, u64), Error> {
        let table = self.routes.read();
        let version = self.routes_version();
        let owner = table.owners.get(contract);
        let main = table.of_main.contains(contract).then_some(&self.routes.main);
        let found = match provider {
            None => owner.or(main),
            Some(name) => owner.into_iter().chain(main).find(|peer| peer.name() == name),
        };
        found.map(|peer| (peer.clone(), version)).ok_or_else(|| match provider {
            Some(name) if owner.or(main).is_some() => {
                Error::NoProvider(format!("`{name}` does not fulfil `{contract}`"))
            }
            _ => Error::UnknownContract(contract.to_string()),
        })
    }
}

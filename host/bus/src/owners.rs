//! The peers of one Main, and the owners of contracts.
//!
//! Knows nothing of what travels between them.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use weir_names::{ContractName, Error, ExtensionId, MAIN};

use crate::{
    id::PeerId,
    peer::{Access, Peer, PeerLimits, Phase},
};

#[derive(Debug)]
pub(crate) struct Owners {
    main: Arc<Peer>,
    table: RwLock<RoutingTable>,
    /// Raised when peers or owners change: earlier look-ups may be wrong now.
    version: AtomicU64,
}

#[derive(Debug)]
struct RoutingTable {
    /// Every peer, by number.
    peers: Vec<Arc<Peer>>,
    owners: HashMap<ContractName, Arc<Peer>>,
    /// Contracts that Main serves when no extension owns them.
    of_main: Vec<ContractName>,
}

impl Owners {
    pub(crate) fn new(main_limits: PeerLimits) -> Self {
        let main = Arc::new(Peer::new(PeerId::MAIN, MAIN.into(), main_limits, None));
        main.set_phase(Phase::Ready);
        let table = RoutingTable { peers: vec![main.clone()], owners: HashMap::new(), of_main: Vec::new() };
        Self { main, table: RwLock::new(table), version: AtomicU64::new(0) }
    }

    pub(crate) fn add(
        &self,
        id: &ExtensionId,
        limits: PeerLimits,
        access: Access,
        copy_of: Option<&Peer>,
    ) -> Arc<Peer> {
        let mut table = self.write();
        let number = PeerId(u32::try_from(table.peers.len()).unwrap_or(u32::MAX));
        let name = id.shared();
        let peer = Arc::new(match copy_of {
            None => Peer::new(number, name, limits, Some(access)),
            Some(original) => Peer::copy(number, name, limits, access, original),
        });
        let fulfills = peer.fulfills().to_vec();
        table.peers.push(peer.clone());
        table.owners.extend(fulfills.into_iter().map(|contract| (contract, peer.clone())));
        self.changed();
        peer
    }

    pub(crate) fn replace(&self, peer: &Arc<Peer>, claim: bool) {
        let mut table = self.write();
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
        self.changed();
    }

    pub(crate) fn disown(&self, peer: &Peer) {
        let mut table = self.write();
        table.owners.retain(|_, owner| owner.id() != peer.id());
        self.changed();
    }

    pub(crate) fn serve_from_main(&self, contract: ContractName) {
        self.write().of_main.push(contract);
    }

    #[inline]
    pub(crate) fn main(&self) -> &Arc<Peer> {
        &self.main
    }

    pub(crate) fn named(&self, name: &str) -> Option<PeerId> {
        self.read().peers.iter().find(|peer| peer.name() == name).map(|peer| peer.id())
    }

    pub(crate) fn get(&self, id: PeerId) -> Option<Arc<Peer>> {
        self.read().peers.get(usize::try_from(id.0).ok()?).cloned()
    }

    /// The version of the table: a look-up in another version may be wrong now.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The peer that answers a request: the named one, else the owner, else Main's handler. Also the version for which
    /// that holds.
    pub(crate) fn find(
        &self,
        contract: &ContractName,
        provider: Option<&str>,
    ) -> Result<(Arc<Peer>, u64), Error> {
        let table = self.read();
        let version = self.version();
        let owner = table.owners.get(contract);
        let main = table.of_main.contains(contract).then_some(&self.main);
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

    fn read(&self) -> RwLockReadGuard<'_, RoutingTable> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, RoutingTable> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it with the table locked, so that a look-up never pairs old owners with the new version.
    fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

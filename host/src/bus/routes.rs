//! Who is there, and who owns which contract.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use super::{Access, Bus, Error, Peer, PeerId, PeerLimits, Phase};
use crate::names::{ContractName, ExtensionId, MAIN};

/// Peers by number and by name, and contracts by owner.
#[derive(Debug)]
pub(super) struct Routes(RwLock<Table>);

#[derive(Debug)]
struct Table {
    main: Arc<Peer>,
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
        Self(RwLock::new(Table {
            peers: vec![main.clone()],
            main,
            owners: HashMap::new(),
            of_main: Vec::new(),
        }))
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus {
    /// Adds an extension as a peer that is down, as the owner of what it may fulfil.
    pub(crate) fn add_peer(&self, id: &ExtensionId, limits: PeerLimits, access: Access) -> Arc<Peer> {
        let mut table = self.routes.write();
        let number = PeerId(u32::try_from(table.peers.len()).unwrap_or(u32::MAX));
        let fulfills = access.fulfills.clone();
        let peer = Arc::new(Peer::new(number, id.as_str().into(), limits, Some(access)));
        table.peers.push(peer.clone());
        table.owners.extend(fulfills.into_iter().map(|contract| (contract, peer.clone())));
        peer
    }

    /// Main serves `contract` from now on, unless an extension owns it.
    pub(crate) fn serve_from_main(
        &self,
        contract: &ContractName,
        operations: &[String],
    ) -> Result<(), Error> {
        self.main().serve(contract.as_str(), operations)?;
        self.routes.write().of_main.push(contract.clone());
        Ok(())
    }

    pub(crate) fn main(&self) -> Arc<Peer> {
        self.routes.read().main.clone()
    }

    pub(crate) fn peer(&self, id: PeerId) -> Option<Arc<Peer>> {
        self.routes.read().peers.get(usize::try_from(id.0).ok()?).cloned()
    }

    /// Who answers a request: the named peer, else the owner of the contract, else Main's own
    /// handler, else an error at once.
    pub(super) fn route(&self, contract: &ContractName, provider: Option<&str>) -> Result<Arc<Peer>, Error> {
        let table = self.routes.read();
        let owner = table.owners.get(contract);
        let main = table.of_main.contains(contract).then_some(&table.main);
        let found = match provider {
            None => owner.or(main),
            Some(name) => owner.into_iter().chain(main).find(|peer| peer.name() == name),
        };
        found.cloned().ok_or_else(|| match provider {
            Some(name) if owner.or(main).is_some() => {
                Error::NoProvider(format!("`{name}` does not fulfil `{contract}`"))
            }
            _ => Error::UnknownContract(contract.to_string()),
        })
    }
}

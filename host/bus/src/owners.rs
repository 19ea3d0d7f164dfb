//! The peers of one Main, and the owners of contracts.
//!
//! Knows nothing of what travels between them.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;
use weir_names::{ContractName, Error, ExtensionId, PeerName, harmless};

use crate::{
    id::PeerId,
    peer::{Access, Peer, PeerLimits, Phase},
};

#[derive(Debug)]
pub(crate) struct Owners {
    main: Arc<Peer>,
    table: RwLock<RoutingTable>,
    /// Raised when extensions, names of programs or owners change. A look-up made under an earlier version may be
    /// wrong.
    version: AtomicU64,
}

/// How many names of programs there may be. A name stays for as long as Main runs.
const MAX_NAMES: usize = 4096;

/// How many bytes of a sender's text an error shows where a name is expected: as many as the longest name has.
pub(crate) const NAME_SHOWN: usize = 64;

#[derive(Debug)]
struct RoutingTable {
    /// Main and every extension that there ever was, with copies, by number.
    peers: Vec<Entry>,
    /// Names of programs, by number minus [`PeerId::FIRST_NAME`]. They stay, because messages carry their numbers.
    names: Vec<Arc<Peer>>,
    /// The programs outside Main that are connected now, by number.
    sessions: HashMap<PeerId, Arc<Peer>>,
    last_session: PeerId,
    owners: HashMap<ContractName, Arc<Peer>>,
    /// Contracts that Main serves while no other peer owns them.
    of_main: Vec<ContractName>,
}

#[derive(Debug)]
enum Entry {
    Peer(Arc<Peer>),
    /// The name of an extension that was forgotten: messages that it sent carry its number.
    Forgotten(Arc<str>),
}

impl RoutingTable {
    fn get(&self, id: PeerId) -> Option<Arc<Peer>> {
        let at = |first: PeerId| usize::try_from(id.0 - first.0).ok();
        match id {
            id if id >= PeerId::FIRST_SESSION => self.sessions.get(&id).cloned(),
            id if id >= PeerId::FIRST_NAME => self.names.get(at(PeerId::FIRST_NAME)?).cloned(),
            _ => Some(match self.peers.get(at(PeerId::MAIN)?)? {
                Entry::Peer(peer) => peer.clone(),
                Entry::Forgotten(name) => {
                    Arc::new(Peer::new(id, name.clone(), PeerLimits::NONE, Access::default()))
                }
            }),
        }
    }

    fn peers(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.peers.iter().filter_map(|entry| if let Entry::Peer(peer) = entry { Some(peer) } else { None })
    }

    fn put(&mut self, id: PeerId, entry: Entry) -> Option<Arc<Peer>> {
        let place = usize::try_from(id.0).ok().and_then(|place| self.peers.get_mut(place))?;
        match std::mem::replace(place, entry) {
            Entry::Peer(before) => Some(before),
            Entry::Forgotten(_) => None,
        }
    }
}

impl Owners {
    pub(crate) fn new(main_limits: PeerLimits) -> Self {
        let main = Arc::new(Peer::main(main_limits));
        main.set_phase(Phase::Ready);
        let table = RoutingTable {
            peers: vec![Entry::Peer(main.clone())],
            names: Vec::new(),
            sessions: HashMap::new(),
            last_session: PeerId::FIRST_SESSION,
            owners: HashMap::new(),
            of_main: Vec::new(),
        };
        Self { main, table: RwLock::new(table), version: AtomicU64::new(0) }
    }

    pub(crate) fn add(
        &self,
        id: &ExtensionId,
        limits: PeerLimits,
        access: Access,
        copy_of: Option<&Peer>,
    ) -> Arc<Peer> {
        let mut table = self.table.write();
        let number = PeerId(u32::try_from(table.peers.len()).unwrap_or(u32::MAX));
        let name = id.shared();
        let peer = Arc::new(match copy_of {
            None => Peer::new(number, name, limits, access),
            Some(original) => Peer::copy(number, name, limits, access, original),
        });
        let fulfills = peer.fulfills();
        table.peers.push(Entry::Peer(peer.clone()));
        table.owners.extend(fulfills.into_iter().map(|contract| (contract, peer.clone())));
        self.changed();
        peer
    }

    pub(crate) fn replace(&self, peer: &Arc<Peer>, claim: bool) {
        let mut table = self.table.write();
        let before = table.put(peer.id(), Entry::Peer(peer.clone()));
        for contract in before.iter().flat_map(|before| before.fulfills()) {
            if table.owners.get(&contract).is_some_and(|owner| owner.id() == peer.id()) {
                table.owners.remove(&contract);
            }
        }
        for contract in peer.fulfills() {
            if claim || !table.owners.contains_key(&contract) {
                table.owners.insert(contract, peer.clone());
            }
        }
        self.changed();
    }

    pub(crate) fn disown(&self, peer: &Peer) {
        let mut table = self.table.write();
        table.owners.retain(|_, owner| owner.id() != peer.id());
        self.changed();
    }

    /// Keeps only the name of an extension that owns nothing.
    pub(crate) fn forget(&self, peer: &Peer) {
        self.table.write().put(peer.id(), Entry::Forgotten(peer.shared_name()));
    }

    /// Returns the name of programs, with these grants from now on. The name owns the contracts that it may serve until
    /// one of its programs serves them.
    pub(crate) fn name(&self, name: &PeerName, access: Access) -> Result<Arc<Peer>, Error> {
        let mut table = self.table.write();
        let table = &mut *table;
        let known = table.names.iter().find(|known| known.name() == name.as_str()).cloned();
        let known = match known {
            Some(known) => {
                known.grant(access);
                known
            }
            None => {
                let (used, allowed) = (table.names.len() as u64 + 1, MAX_NAMES as u64);
                if used > allowed {
                    return Err(Error::LimitExceeded { name: "peer-names".into(), used, allowed });
                }
                let number = PeerId::FIRST_NAME.0 + u32::try_from(table.names.len()).unwrap_or_default();
                let new = Arc::new(Peer::name_of_programs(PeerId(number), name, access));
                table.names.push(new.clone());
                new
            }
        };
        let fulfills = known.fulfills();
        table.owners.retain(|contract, owner| owner.sender() != known.id() || fulfills.contains(contract));
        for contract in fulfills {
            if table.owners.get(&contract).is_none_or(|owner| owner.sender() != known.id()) {
                table.owners.insert(contract, known.clone());
            }
        }
        self.changed();
        Ok(known)
    }

    /// Adds a program that arrives under a name, and returns its peer.
    pub(crate) fn arrive(&self, name: &Peer, limits: PeerLimits) -> Arc<Peer> {
        let mut table = self.table.write();
        let mut number = table.last_session;
        loop {
            // Numbers repeat only after two thousand million others.
            number = PeerId(number.0.wrapping_add(1).max(PeerId::FIRST_SESSION.0));
            if !table.sessions.contains_key(&number) {
                break;
            }
        }
        table.last_session = number;
        let session = Arc::new(name.session(number, limits));
        session.set_phase(Phase::Ready);
        table.sessions.insert(number, session.clone());
        session
    }

    /// Makes a program serve a contract from now on. Fails if it may not, has left, or another peer owns the contract.
    pub(crate) fn serve(
        &self,
        session: &Arc<Peer>,
        contract: ContractName,
        operations: &[String],
    ) -> Result<(), Error> {
        let mut table = self.table.write();
        session.may_serve(&contract)?;
        if session.has_left() {
            return Err(Error::PeerGone);
        }
        let other = table.owners.get(&contract);
        if let Some(other) = other.filter(|other| ![session.sender(), session.id()].contains(&other.id())) {
            let session = if other.sender() == session.sender() { "another session of " } else { "" };
            return Err(Error::Invalid(format!("`{contract}` is served by {session}`{}`", other.name())));
        }
        session.serve(contract.as_str(), operations)?;
        table.owners.insert(contract, session.clone());
        self.changed();
        Ok(())
    }

    /// Removes a program that leaves. What it owned belongs to its name again. Returns whether it owned anything.
    pub(crate) fn leave(&self, session: &Peer) -> bool {
        // Done before the table is locked: it wakes senders, which may use the table.
        session.set_phase(Phase::Down);
        let mut table = self.table.write();
        let Some(name) = table.get(session.sender()) else { return false };
        table.sessions.remove(&session.id());
        let mut has_owned = false;
        for owner in table.owners.values_mut().filter(|owner| owner.id() == session.id()) {
            *owner = name.clone();
            has_owned = true;
        }
        if has_owned {
            self.changed();
        }
        has_owned
    }

    /// Returns the programs that run under this name now.
    pub(crate) fn sessions(&self, name: &Peer) -> Vec<Arc<Peer>> {
        self.table.read().sessions.values().filter(|session| session.sender() == name.id()).cloned().collect()
    }

    /// Whether requests of this contract go to this peer, or to the original of which it is a copy.
    pub(crate) fn is_provider(&self, contract: &ContractName, peer: &Peer) -> bool {
        self.find(contract, None).is_ok_and(|(owner, _)| owner.id() == peer.original())
    }

    /// Whether a peer that is ready owns this contract.
    pub(crate) fn is_served(&self, contract: &ContractName) -> bool {
        self.table.read().owners.get(contract).is_some_and(|owner| owner.is_ready())
    }

    pub(crate) fn serve_from_main(&self, contract: ContractName) {
        self.table.write().of_main.push(contract);
    }

    #[inline]
    pub(crate) fn main(&self) -> &Arc<Peer> {
        &self.main
    }

    /// Returns Main or the extension with this name, or else every program under the name.
    pub(crate) fn named(&self, name: &str) -> Vec<PeerId> {
        let table = self.table.read();
        let is_meant = |peer: &&Arc<Peer>| peer.name() == name;
        match table.peers().find(is_meant) {
            Some(peer) => vec![peer.id()],
            None => table.sessions.values().filter(is_meant).map(|peer| peer.id()).collect(),
        }
    }

    pub(crate) fn get(&self, id: PeerId) -> Option<Arc<Peer>> {
        self.table.read().get(id)
    }

    /// Returns Main, every extension that was not forgotten, except copies, and every name of programs.
    pub(crate) fn providers(&self) -> Vec<Arc<Peer>> {
        let table = self.table.read();
        let peers = table.peers().filter(|peer| peer.original() == peer.id());
        peers.chain(&table.names).cloned().collect()
    }

    /// Returns the version of the table. A look-up made under another version may be wrong.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the peer that answers a request, and the version of the table for which that holds. The peer is the
    /// contract's owner, or else Main if it serves the contract. A given `provider` must be one of the two.
    pub(crate) fn find(
        &self,
        contract: &ContractName,
        provider: Option<&str>,
    ) -> Result<(Arc<Peer>, u64), Error> {
        let table = self.table.read();
        let version = self.version();
        let owner = table.owners.get(contract);
        let main = table.of_main.contains(contract).then_some(&self.main);
        let found = match provider {
            None => owner.or(main),
            Some(name) => owner.into_iter().chain(main).find(|peer| peer.name() == name),
        };
        found.map(|peer| (peer.clone(), version)).ok_or_else(|| match provider {
            Some(name) if owner.or(main).is_some() => {
                Error::NoProvider(format!("`{}` does not fulfil `{contract}`", harmless(name, NAME_SHOWN)))
            }
            _ => Error::UnknownContract(contract.to_string()),
        })
    }

    /// Raises the version. The caller has the table locked, so that no look-up pairs old owners with the new version.
    fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
impl Owners {
    /// Returns how many programs are connected, and the owner of each contract.
    pub(crate) fn census(&self) -> (usize, HashMap<ContractName, PeerId>) {
        let table = self.table.read();
        let owners = table.owners.iter().map(|(contract, owner)| (contract.clone(), owner.id()));
        (table.sessions.len(), owners.collect())
    }

    /// Makes the next program get the number after `last`.
    pub(crate) fn count_sessions_from(&self, last: PeerId) {
        self.table.write().last_session = last;
    }
}

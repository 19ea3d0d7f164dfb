//! Who waits for whom with everything else stopped, and the refusal of waits that would never end.

use std::{collections::BTreeMap, sync::Arc};

use super::{Bus, Error, Peer, PeerId, Queue, room::Room};

/// For whom a peer waits.
#[derive(Clone, Debug)]
pub(super) enum On {
    /// For one peer: its answer, or room in its inbox.
    Peer(PeerId),
    /// For room in a queue: for one of those who take from it.
    Queue(Arc<Queue>),
}

/// One thing that a peer waits for: with a room, until there is some.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) on: On,
    pub(super) room: Option<Arc<Room>>,
}

impl Wait {
    /// For the answer of a peer.
    pub(super) fn answer(peer: PeerId) -> Self {
        Self { on: On::Peer(peer), room: None }
    }

    pub(super) fn is_over(&self) -> bool {
        self.room.as_ref().is_some_and(|room| !room.is_waiting())
    }
}

/// A peer waits for others, and nothing else reaches it meanwhile. Dropped, it waits no longer.
#[derive(Debug)]
pub(super) struct Waits(Arc<Peer>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.set_waits([]);
    }
}

impl Bus {
    /// From now on `caller` waits for the answer of `receiver`, as [`wait_for`](Self::wait_for) has it.
    pub(super) fn wait_for_answer(&self, caller: &Arc<Peer>, receiver: &Peer) -> Result<Waits, Error> {
        let wait = Wait::answer(receiver.id());
        // Nearly always there is no way to follow.
        if receiver.id() == caller.id() || !receiver.ends_all_waits() {
            self.refuse_circle(caller, std::iter::once(&wait.on))?;
        }
        caller.set_waits([wait]);
        Ok(Waits(caller.clone()))
    }

    /// From now on `caller` waits for all of these; fails if one of them waits, by however many more, for
    /// `caller`. Nobody waits for an instance that is still to take over.
    pub(super) fn wait_for(&self, caller: &Arc<Peer>, waits: Vec<Wait>) -> Result<Waits, Error> {
        self.refuse_circle(caller, waits.iter().map(|wait| &wait.on))?;
        caller.set_waits(waits);
        Ok(Waits(caller.clone()))
    }

    /// Fails if one of these waits, by however many others, for `caller`.
    pub(super) fn refuse_circle<'o>(
        &self,
        caller: &Peer,
        mut others: impl Iterator<Item = &'o On>,
    ) -> Result<(), Error> {
        let mut known = BTreeMap::new();
        match others.find_map(|on| self.way_back(on, caller, &mut known)) {
            Some(way) if !caller.is_successor() => {
                let circle = std::iter::once(caller.name().to_owned()).chain(way);
                Err(Error::WouldDeadlock(circle.collect()))
            }
            _ => Ok(()),
        }
    }

    /// The way to `caller`, if all that could end the wait wait for it, or are it.
    fn way_back(
        &self,
        on: &On,
        caller: &Peer,
        known: &mut BTreeMap<PeerId, Option<Vec<String>>>,
    ) -> Option<Vec<String>> {
        let owner = match on {
            On::Queue(queue) => {
                let takers: Vec<_> = queue.takers().into_iter().filter_map(|id| self.peer(id)).collect();
                return self.way_back_of(&takers, caller, known);
            }
            On::Peer(id) => *id,
        };
        if let Some(way) = known.get(&owner) {
            return way.clone();
        }
        known.insert(owner, None);
        let way = self.way_back_of(&self.servers(&self.peer(owner)?), caller, known);
        known.insert(owner, way.clone());
        way
    }

    /// Of those of whom any could end a wait.
    fn way_back_of(
        &self,
        servers: &[Arc<Peer>],
        caller: &Peer,
        known: &mut BTreeMap<PeerId, Option<Vec<String>>>,
    ) -> Option<Vec<String>> {
        let is_one = servers.iter().any(|server| server.id() == caller.id());
        let mut way = is_one.then(|| vec![caller.name().to_owned()]);
        // Of several, one that does not run serves nothing, and waits for nobody.
        let counts =
            |server: &&Arc<Peer>| server.id() != caller.id() && (servers.len() == 1 || server.is_up());
        for server in servers.iter().filter(counts) {
            let waits = server.waits();
            let on = waits
                .iter()
                .filter(|wait| !wait.is_over())
                .find_map(|wait| self.way_back(&wait.on, caller, known))?;
            let name = self.peer(server.owner()).map_or_else(String::new, |owner| owner.name().to_owned());
            way.get_or_insert_with(|| std::iter::once(name).chain(on).collect());
        }
        way
    }
}

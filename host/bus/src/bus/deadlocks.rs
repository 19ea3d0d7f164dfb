//! Waits that would never end: which blocked peer waits for which, and the refusal of a wait that would close a circle.

use std::{collections::BTreeMap, sync::Arc};

use super::Bus;
use crate::{
    id::PeerId,
    peer::{Peer, Wait, WaitTarget},
};
use weir_names::Error;

/// Marks a peer as blocked: it waits for others, and nothing else reaches it meanwhile. Dropping the guard ends that.
#[derive(Debug)]
pub(crate) struct WaitGuard(Arc<Peer>);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.0.set_waits([]);
    }
}

impl Bus {
    /// From now on `caller` waits for an answer of `receiver`, or of a copy that shares its inbox. Fails if each of
    /// these that runs is `caller` or waits for `caller`, directly or through others.
    ///
    /// A caller that has yet to take over from another instance is exempt: nobody waits for it.
    pub(crate) fn wait_for_answer(&self, caller: &Arc<Peer>, receiver: &Peer) -> Result<WaitGuard, Error> {
        let wait = Wait::answer(receiver.id());
        // Nearly always the receiver waits for nothing, and no search is needed.
        if receiver.id() == caller.id() || !receiver.ends_all_waits() {
            self.refuse_circle(caller, std::iter::once(&wait.on))?;
        }
        caller.set_waits([wait]);
        Ok(WaitGuard(caller.clone()))
    }

    /// From now on `caller` waits for all of `waits`. Fails if only `caller` could end one of them, directly or through
    /// others. A caller that has yet to take over from another instance is exempt: nobody waits for it.
    pub(crate) fn wait_for(&self, caller: &Arc<Peer>, waits: Vec<Wait>) -> Result<WaitGuard, Error> {
        self.refuse_circle(caller, waits.iter().map(|wait| &wait.on))?;
        caller.set_waits(waits);
        Ok(WaitGuard(caller.clone()))
    }

    /// Fails if a wait of `caller` for one of `others` could end only by `caller` itself, directly or through others.
    /// Never fails for a caller that has yet to take over from another instance.
    pub(crate) fn refuse_circle<'o>(
        &self,
        caller: &Peer,
        mut others: impl Iterator<Item = &'o WaitTarget>,
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

    /// Returns the names on the path from `on` to `caller`. `None` if a peer that could end the wait neither is
    /// `caller` nor waits for `caller`, or if there is no such peer.
    ///
    /// `known` has the outcome for each peer that was searched, and `None` for a peer whose search is under way.
    fn way_back(
        &self,
        on: &WaitTarget,
        caller: &Peer,
        known: &mut BTreeMap<PeerId, Option<Vec<String>>>,
    ) -> Option<Vec<String>> {
        let original = match on {
            WaitTarget::Queue(queue) => {
                let takers: Vec<_> = queue.takers().into_iter().filter_map(|id| self.peer(id)).collect();
                return self.way_back_of(&takers, caller, known);
            }
            WaitTarget::Peer(id) => *id,
        };
        if let Some(way) = known.get(&original) {
            return way.clone();
        }
        known.insert(original, None);
        let way = self.way_back_of(&self.servers(&self.peer(original)?), caller, known);
        known.insert(original, way.clone());
        way
    }

    /// Returns the names on the path from `servers` to `caller`. Any one of `servers` could end the wait, so there is a
    /// path only if each of them that runs is `caller` or waits for `caller`.
    fn way_back_of(
        &self,
        servers: &[Arc<Peer>],
        caller: &Peer,
        known: &mut BTreeMap<PeerId, Option<Vec<String>>>,
    ) -> Option<Vec<String>> {
        let is_one = servers.iter().any(|server| server.id() == caller.id());
        let mut way = is_one.then(|| vec![caller.name().to_owned()]);
        // Among several, a server that does not run or is about to end does not count: it takes no more requests.
        let counts =
            |server: &&Arc<Peer>| server.id() != caller.id() && (servers.len() == 1 || server.is_up());
        for server in servers.iter().filter(counts) {
            let waits = server.waits();
            let on = waits
                .iter()
                .filter(|wait| !wait.is_over())
                .find_map(|wait| self.way_back(&wait.on, caller, known))?;
            let name = self.peer(server.original()).map_or_else(String::new, |peer| peer.name().to_owned());
            way.get_or_insert_with(|| std::iter::once(name).chain(on).collect());
        }
        way
    }
}

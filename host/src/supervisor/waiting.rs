//! Who waits for whom: extensions are started when what they require is there.

use super::{Happening, Step, Supervisor};
use crate::{bus::Phase, names::ContractName, roster::State};

impl Supervisor {
    /// Starts every extension that waits and whose requirements are met. One whose requirement does not
    /// come has failed, until that does.
    pub(super) fn settle(&mut self) {
        let waiting = self.slots.waiting();
        if waiting.is_empty() {
            return;
        }
        let coming = self.slots.coming();
        for index in waiting {
            let Some(slot) = self.slots.get(index) else { continue };
            if !slot.life.is_waiting() {
                // What was decided of another before has started it.
                continue;
            }
            let is_failed = slot.life.state() == State::Failed;
            let unmet = self.slots.unmet(&slot.config).next();
            match unmet.map(|(owner, contract)| self.why_blocked(owner, contract)) {
                None => self.launch(index),
                Some(_) if is_failed => {}
                // Requests wait for it.
                Some(_) if coming.contains(&index) => slot.unit.version().peer.set_phase(Phase::Starting),
                Some(reason) => self.block(index, &reason),
            }
        }
    }

    /// What an extension requires does not come: whoever waits for it hears that.
    pub(super) fn block(&mut self, index: usize, reason: &str) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.apply(Happening::Blocked) == Step::FallBack {
            self.fall_back(index, reason);
            return self.settle();
        }
        let peer = slot.unit.version().peer.clone();
        peer.set_phase(Phase::Down);
        peer.inbox().drop_requests(|_| true);
        self.set_state(index, State::Failed, Some(reason.to_owned()));
        self.settle_starters(index, reason);
        self.gave_up(index, reason);
    }

    pub(super) fn why_blocked(&self, owner: Option<usize>, contract: &ContractName) -> String {
        match owner.and_then(|owner| self.slots.get(owner)) {
            Some(owner) => format!("it requires `{contract}`, and `{}` does not run", owner.unit.id()),
            None => format!("it requires `{contract}`, which nobody fulfills"),
        }
    }
}

//! Starts extensions when what they require is there, and what they want does not come any more.

use weir_bus::Phase;
use weir_names::ContractName;
use weir_reports::ExtensionState;

use super::{LifecycleEvent, Step, Supervisor};

impl Supervisor {
    /// Starts waiting extensions with all requirements met, after those that they want and that are coming. If a
    /// requirement does not come, the extension fails until it does.
    pub(super) fn settle(&mut self) {
        // One that fails now keeps those that want it waiting no longer.
        while self.settle_once() {}
    }

    /// Whether others must be looked at again.
    fn settle_once(&mut self) -> bool {
        let waiting = self.slots.waiting();
        if waiting.is_empty() {
            return false;
        }
        let coming = self.slots.coming();
        let mut blocked = Vec::new();
        for index in waiting {
            let Some(slot) = self.slots.get(index) else { continue };
            if !slot.life.is_waiting() {
                // An earlier decision of this loop has started it.
                continue;
            }
            let is_failed = slot.life.state() == ExtensionState::Failed;
            let unmet = self.slots.unmet(&slot.config).next();
            match unmet.map(|(owner, contract)| self.why_blocked(owner, contract)) {
                None if !self.slots.after(index).iter().any(|before| coming.contains(before)) => {
                    self.launch(index);
                }
                _ if is_failed => {}
                None => slot.unit.version().peer.set_phase(Phase::Starting),
                // Requests wait for it.
                Some(_) if coming.contains(&index) => slot.unit.version().peer.set_phase(Phase::Starting),
                Some(reason) => blocked.push((index, reason)),
            }
        }
        self.block(&blocked);
        !blocked.is_empty()
    }

    /// Fails extensions that miss a requirement for good. Answers follow once all of them have failed.
    pub(super) fn block(&mut self, blocked: &[(usize, String)]) {
        let mut given_up = Vec::new();
        let mut fell_back = false;
        for (index, reason) in blocked {
            let Some(slot) = self.slots.get_mut(*index) else { continue };
            if slot.apply(LifecycleEvent::Blocked) == Step::FallBack {
                self.fall_back(*index, reason);
                fell_back = true;
                continue;
            }
            slot.unit.version().peer.set_phase(Phase::Down);
            self.turn_away(*index);
            self.set_state(*index, ExtensionState::Failed, Some(reason.clone()));
            given_up.push((*index, reason));
        }
        for (index, reason) in given_up {
            self.settle_starters(index, reason);
            self.gave_up(index, reason);
        }
        if fell_back {
            self.settle();
        }
    }

    pub(super) fn why_blocked(&self, owner: Option<usize>, contract: &ContractName) -> String {
        match owner.and_then(|owner| self.slots.get(owner)) {
            Some(owner) => format!("it requires `{contract}`, and `{}` does not run", owner.unit.id()),
            None => match self.parts.bus.owner_of(contract) {
                Some(outside) => {
                    format!("it requires `{contract}`, and `{}` is not connected", outside.name())
                }
                None => format!("it requires `{contract}`, which nobody fulfills"),
            },
        }
    }
}

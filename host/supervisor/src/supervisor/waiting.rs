//! Starts an extension once its requirements are met and no extension that it wants is still on its way.

use weir_bus::Phase;
use weir_names::ContractName;
use weir_reports::ExtensionState;

use super::{LifecycleEvent, Step, Supervisor};

impl Supervisor {
    /// Starts each waiting extension whose requirements are met, once no extension that it wants is still on its way.
    /// An extension whose requirement cannot come fails, and starts if the requirement comes after all.
    pub(super) fn reconcile(&mut self) {
        // An extension that fails in one pass no longer holds up the extensions that want it.
        while self.reconcile_once() {}
    }

    /// One pass over the waiting extensions. Returns whether any was blocked, which can decide others.
    fn reconcile_once(&mut self) -> bool {
        let waiting = self.slots.waiting();
        if waiting.is_empty() {
            return false;
        }
        let coming = self.slots.coming();
        let mut blocked = Vec::new();
        for index in waiting {
            let Some(slot) = self.slots.get(index) else { continue };
            if !slot.life.is_waiting() {
                // An earlier round of this loop has started the extension.
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
                // What the extension requires is on its way. Meanwhile, requests to it wait in the inbox.
                Some(_) if coming.contains(&index) => slot.unit.version().peer.set_phase(Phase::Starting),
                Some(reason) => blocked.push((index, reason)),
            }
        }
        self.block(&blocked);
        !blocked.is_empty()
    }

    /// Fails extensions whose requirement cannot come. A new version on trial gives way to the version before instead.
    /// Orders that wait for these extensions are answered once all have failed.
    pub(super) fn block(&mut self, blocked: &[(usize, String)]) {
        let mut given_up = Vec::new();
        let mut fell_back = false;
        for (index, reason) in blocked {
            let Some(slot) = self.slots.get_mut(*index) else { continue };
            if slot.apply(LifecycleEvent::Blocked) == Step::FallBack {
                self.fall_back(*index, reason, false);
                fell_back = true;
                continue;
            }
            slot.unit.version().peer.set_phase(Phase::Down);
            self.turn_away(*index);
            self.set_state(*index, ExtensionState::Failed, Some(reason.clone()));
            given_up.push((*index, reason));
        }
        for (index, reason) in given_up {
            self.fail_starters(index, reason);
            self.gave_up(index, reason);
        }
        if fell_back {
            self.reconcile();
        }
    }

    /// Says why a required contract is not served. `owner` is the extension that owns it, if any.
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

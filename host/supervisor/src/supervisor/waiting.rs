//! Starts an extension once its requirements are met and no extension that it wants is still on its way.

use std::sync::Arc;

use tokio::sync::oneshot;
use weir_bus::Phase;
use weir_config::ExtensionConfig;
use weir_names::ContractName;
use weir_reports::ExtensionState;
use weir_versions::Chosen;

use super::{Done, LifecycleEvent, Step, Supervisor};

/// What is known of a version that could run in place of a configured one whose requirement cannot come.
#[derive(Debug)]
pub(super) enum Alternative {
    Unknown,
    /// The component is read, to find out, under this number. Dropping the receiver ends the reading.
    Asked(u64, #[expect(dead_code, reason = "held for its drop")] oneshot::Receiver<()>),
    /// There is none.
    None,
}

/// What was found out about the alternative of an extension with this configuration.
#[derive(Debug)]
pub(super) struct FoundInstead {
    number: u64,
    index: usize,
    configured: Arc<ExtensionConfig>,
    chosen: Option<Chosen>,
}

impl Supervisor {
    /// Starts each waiting extension whose requirements are met, once no extension that it wants is still on its way.
    /// An extension whose requirement cannot come fails, and starts if the requirement comes after all.
    pub(super) fn reconcile(&mut self) {
        // An extension that fails in one pass no longer holds up the extensions that want it.
        while self.reconcile_once() {}
    }

    /// One pass over the waiting extensions. Returns whether another pass can decide more, since
    /// some were blocked or are looked at first.
    fn reconcile_once(&mut self) -> bool {
        let waiting = self.slots.waiting();
        if waiting.is_empty() {
            return false;
        }
        let coming = self.slots.coming();
        let (mut blocked, mut has_asked) = (Vec::new(), false);
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
                Some(_) if self.ask_for_another(index) => has_asked = true,
                Some(reason) => blocked.push((index, reason)),
            }
        }
        if has_asked {
            // What requires these may start, too.
            return true;
        }
        self.block(&blocked);
        !blocked.is_empty()
    }

    /// Finds out whether an extension whose requirement cannot come was to run a refused version. The one that runs in its
    /// place may not have the requirement. Returns whether that is open.
    fn ask_for_another(&mut self, index: usize) -> bool {
        let Some(slot) = self.slots.get_mut(index) else { return false };
        let configured = slot.unit.configured();
        let may_be_refused = configured.update.is_some() && *slot.config == *configured;
        if !may_be_refused || slot.life.is_on_trial() || !matches!(slot.alternative, Alternative::Unknown) {
            return false;
        }
        let (mut unwanted, wanted) = oneshot::channel();
        self.runs += 1;
        let number = self.runs;
        slot.alternative = Alternative::Asked(number, wanted);
        let (programs, versions) = (self.parts.programs.clone(), self.parts.versions.clone());
        self.tasks.spawn(async move {
            let extension = configured.clone();
            let found = programs.look_at(configured.clone(), move |opened| {
                versions.choose_instead(&extension, opened.ok()?.hash())
            });
            let chosen = tokio::select! {
                found = found => found.ok().flatten(),
                () = unwanted.closed() => None,
            };
            Done::Instead(Box::new(FoundInstead { number, index, configured, chosen }))
        });
        true
    }

    /// Makes the version that was found the next one. Without one, the extension fails for want of its requirement.
    pub(super) fn found_instead(&mut self, found: FoundInstead) {
        let FoundInstead { number, index, configured, chosen } = found;
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !matches!(slot.alternative, Alternative::Asked(asked, _) if asked == number) {
            return;
        }
        let is_same = *slot.unit.configured() == *configured && *slot.config == *configured;
        slot.alternative = match chosen {
            None if is_same => Alternative::None,
            _ => Alternative::Unknown,
        };
        if let Some(chosen) = chosen.filter(|_| is_same && slot.life.is_waiting()) {
            self.install_instead(index, &chosen);
        }
    }

    /// Fails extensions whose requirement cannot come. A new version on trial gives way to the version before instead.
    /// Orders that wait for these extensions are answered once all have failed.
    pub(super) fn block(&mut self, blocked: &[(usize, String)]) {
        let mut given_up = Vec::new();
        let mut fell_back = false;
        for (index, reason) in blocked {
            let Some(slot) = self.slots.get_mut(*index) else { continue };
            slot.alternative = Alternative::Unknown;
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

//! Orders of operators and embedders for one extension, or for all.

use weir_bus::Phase;
use weir_guest::Loaded;
use weir_reports::ExtensionState;
use weir_versions::Chosen;

use super::{
    ControlError, LifecycleEvent, OrderReply, Slot, Step, Supervisor, answer, reload::Asker,
    waiting::Alternative,
};
use crate::events::MainEvent;

impl Supervisor {
    pub(super) fn start(&mut self, index: usize, reply: OrderReply) {
        if self.shutting_down {
            return answer([reply], || Err(ControlError::ShuttingDown));
        }
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.life.is_there() {
            return answer([reply], || Ok(()));
        }
        slot.starters.push(reply);
        if slot.life.state() == ExtensionState::Quarantined {
            let reason = slot.unit.status().reason.unwrap_or_default();
            return self.fail_starters(index, &reason);
        }
        if slot.life.state() == ExtensionState::BackingOff {
            // A start means the component file as it is now, so the loaded program is dropped.
            slot.unit.version().forget_program();
        }
        self.want(index);
    }

    pub(super) fn stop(&mut self, index: usize, reply: Option<OrderReply>) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.stoppers.extend(reply);
        slot.due = None;
        slot.alternative = Alternative::Unknown;
        let was = slot.life.state();
        let step = slot.apply(LifecycleEvent::Stop);
        if slot.life.is_running() {
            // If it was draining to be replaced, it now ends for good and refuses requests.
            slot.unit.version().peer.set_phase(Phase::Draining);
        }
        match step {
            Step::Drain => self.drain(index),
            _ if was != ExtensionState::Draining && was != ExtensionState::Quarantined => {
                let (version, state) = (slot.unit.version(), slot.life.state());
                version.forget_program();
                version.peer.set_phase(Phase::Down);
                self.disconnect(index);
                self.set_state(index, state, None);
            }
            _ => {}
        }
        if self.slots.get(index).is_some_and(|slot| slot.life.is_running()) {
            // Waiting requests are answered now, because the instance takes no more of them, however long its end
            // takes.
            self.turn_away(index);
        }
        self.fail_starters(index, "it was stopped");
        self.give_up_reload(index, "it was stopped");
        self.answer_stoppers(index);
    }

    pub(super) fn restart(&mut self, index: usize, reply: OrderReply) {
        if self.shutting_down {
            return answer([reply], || Err(ControlError::ShuttingDown));
        }
        // Takes over the askers of a restart that still loads. The file may have changed, so loading begins anew.
        let mut replies = self.take_restart(index).unwrap_or_default();
        replies.push(reply);
        let Some(slot) = self.slots.get(index) else { return };
        if slot.life.state() == ExtensionState::Ready && slot.reload.is_none() {
            // The extension serves on while the new program loads, which may have to be compiled.
            let config = slot.unit.configured();
            return self.load(index, config, Asker::Restart(replies), true);
        }
        self.begin_restart(index, replies, None);
    }

    /// Restarts with the loaded program of this version if there is one. Otherwise the next instance loads the file as
    /// it is then.
    pub(super) fn begin_restart(
        &mut self,
        index: usize,
        replies: Vec<OrderReply>,
        loaded: Option<(Loaded, Chosen)>,
    ) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.starters.extend(replies);
        slot.due = None;
        // Another version, so that a reload meanwhile can fall back to the running one.
        let version = slot.unit.version_anew();
        // What was loaded has been refused meanwhile, and the next start asks what to run.
        let is_refused = std::mem::take(&mut slot.goes_back);
        let loaded = loaded.filter(|_| !is_refused);
        match loaded {
            Some((loaded, chosen)) => {
                version.keep(loaded);
                version.note_chosen(chosen.number, chosen.is_canary);
            }
            None => self.parts.programs.read_again(&slot.config.component),
        }
        slot.unit.set_version(version);
        let step = slot.apply(LifecycleEvent::Restart);
        self.come_again(index, step);
        self.give_up_reload(index, "it was restarted");
        self.want(index);
    }

    /// Carries out `step` for an extension that is to start again. If it runs, it drains. Else it waits for its start.
    pub(super) fn come_again(&mut self, index: usize, step: Step) {
        if step == Step::Drain {
            return self.drain(index);
        }
        let Some(slot) = self.slots.get(index) else { return };
        match slot.life.state() {
            ExtensionState::Draining => slot.unit.version().peer.set_phase(Phase::Replacing),
            state => self.set_state(index, state, None),
        }
    }

    /// Makes an extension and what it requires start as soon as they can. The restart delay of a requirement goes on.
    pub(super) fn want(&mut self, index: usize) {
        for needed in self.slots.with_required(index) {
            let Some(slot) = self.slots.get_mut(needed) else { continue };
            if needed != index && slot.life.state() == ExtensionState::BackingOff {
                continue;
            }
            slot.due = None;
            let was = slot.life.state();
            // A quarantine refuses the start. Extensions that wait for it learn of that when they are reconciled.
            let _quarantined = slot.apply(LifecycleEvent::Start);
            let state = slot.life.state();
            if state == ExtensionState::Draining {
                slot.unit.version().peer.set_phase(Phase::Replacing);
            } else if state != was {
                self.set_state(needed, state, None);
            }
        }
    }

    /// Begins the shutdown, and goes on with it after each end: stops the extensions that need not wait for another one
    /// to stop first.
    pub(super) fn shut_down(&mut self) {
        if !std::mem::replace(&mut self.shutting_down, true) {
            let _nobody = self.parts.events.send(MainEvent::Stopping.into());
        }
        for index in self.slots.those(|slot| slot.reload.is_some()) {
            self.give_up_reload(index, "main is shutting down");
        }
        let idle = self
            .slots
            .those(|slot| slot.runs().next().is_none() && (slot.life.is_waiting() || slot.due.is_some()));
        for index in idle.into_iter().chain(self.slots.stoppable()) {
            let drains =
                |slot: &Slot| slot.life.state() == ExtensionState::Draining && !slot.life.is_coming();
            if !self.slots.get(index).is_some_and(drains) {
                self.stop(index, None);
            }
        }
    }
}

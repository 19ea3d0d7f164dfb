//! The new version starts beside the old one, and takes its place when it is ready or when the old one fails.

use weir_bus::Phase;
use weir_guest::Exit;
use weir_reports::ExtensionState;

use super::{
    super::{
        LifecycleEvent, Supervisor,
        run::{Ended, Run},
    },
    Reload, Stage, Tenure,
};

impl Supervisor {
    /// Makes the successor current once it is ready. The instance before is told to finish.
    pub(in super::super) fn take_over(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !slot.is_succeeded() {
            return;
        }
        let Some(next) = slot.successor.take() else { return };
        slot.predecessor = slot.current.replace(next.clone());
        slot.apply(LifecycleEvent::TakenOver { is_ready: true });
        slot.predecessor.iter().for_each(Run::stop);
        next.version.note_served();
        self.install(index, &next.version, Tenure::ForGood);
        next.version.peer.become_current();
        next.version.peer.set_phase(Phase::Ready);
        self.set_state(index, ExtensionState::Ready, None);
        self.observe(index);
        self.set_stage(index, Stage::Retiring);
    }

    /// Makes the successor current, ready or not, because the current instance has failed. If the current instance has
    /// finished, or the extension is in quarantine, gives up the reload instead.
    pub(in super::super) fn adopt(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !slot.is_succeeded() {
            return;
        }
        match slot.life.state() {
            // Loaded after a caller had it ended.
            ExtensionState::BackingOff | ExtensionState::Failed | ExtensionState::Loaded => {}
            ExtensionState::Stopped => return self.give_up_reload(index, "the version before has finished"),
            _ => return self.give_up_reload(index, "the version before has failed for good"),
        }
        let Some(next) = slot.successor.take() else { return };
        let before = slot.unit.version();
        slot.due = None;
        slot.apply(LifecycleEvent::TakenOver { is_ready: false });
        slot.current = Some(next.clone());
        self.install(index, &next.version, Tenure::OnTrial);
        next.version.peer.become_current();
        next.version.peer.set_phase(Phase::Starting);
        self.set_state(index, ExtensionState::Starting, None);
        self.set_stage(index, Stage::Trial(Some(before)));
    }

    pub(in super::super) fn successor_ended(&mut self, index: usize, ended: &Ended) {
        self.parts.bus.discard(&ended.run.version.peer);
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.successor = None;
        let (unit, state) = (slot.unit.clone(), slot.life.state());
        if let Some(Reload { stage: Stage::GivenUp(reason), .. }) = &slot.reload {
            let reason = (*reason).to_owned();
            self.finish(index, Err(reason));
        } else {
            self.record_failure(&unit, &ended.end, state, None);
            if !matches!(ended.end.exit, Exit::Hindered { .. }) {
                self.refuse(index, ended.run.version.number(), &ended.end.exit.to_string());
            }
            self.finish(index, Err(format!("{}; the version before serves on", ended.end.exit)));
        }
        self.answer_stoppers(index);
    }

    pub(in super::super) fn predecessor_ended(&mut self, index: usize, ended: &Ended) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.predecessor = None;
        let (unit, state) = (slot.unit.clone(), slot.life.state());
        if !matches!(ended.end.exit, Exit::Finished | Exit::Failed(_)) {
            self.record_failure(&unit, &ended.end, state, None);
        }
        self.finish(index, Ok(true));
        self.answer_stoppers(index);
    }
}

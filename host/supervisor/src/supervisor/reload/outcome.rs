//! How a reload ends: with the new version, with the version before, or given up.

use weir_logs::{Level, Source};
use weir_reports::ExtensionState;

use super::{
    super::{ControlError, Supervisor, answer, run::Run},
    Asker, Reload, Stage, Tenure,
};

impl Supervisor {
    /// Installs the version before again, because the new one did not come up. If that is its fault, it is refused.
    pub(in super::super) fn fall_back(&mut self, index: usize, reason: &str, is_fault: bool) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let number = slot.unit.version().number();
        let is_refused = matches!(&slot.reload, Some(Reload { asker: Asker::Versions(_), .. }));
        if let Some(Reload { stage: stage @ Stage::Trial(Some(_)), .. }) = &mut slot.reload
            && let Stage::Trial(Some(before)) = std::mem::replace(stage, Stage::Back(reason.to_owned()))
        {
            self.parts.bus.discard(&slot.unit.version().peer);
            self.install(index, &before, Tenure::Back);
            if is_fault && !is_refused {
                self.refuse(index, number, reason);
            }
        }
    }

    /// Ends the reload of an extension that has come up, with its new version or with the one before.
    pub(in super::super) fn came_up(&mut self, index: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        match slot.reload.as_ref().map(|reload| &reload.stage) {
            Some(Stage::Trial(_)) if !slot.life.is_on_trial() => self.finish(index, Ok(true)),
            Some(Stage::Back(reason)) => {
                let does = if slot.life.state() == ExtensionState::Ready { "serves" } else { "runs" };
                let reason = format!("{reason}; the version before {does} again");
                self.finish(index, Err(reason));
            }
            _ => {}
        }
    }

    /// Ends the reload of an extension whose next instance does not come, for this reason.
    pub(in super::super) fn gave_up(&mut self, index: usize, reason: &str) {
        let Some(slot) = self.slots.get(index) else { return };
        match slot.reload.as_ref().map(|reload| &reload.stage) {
            Some(Stage::Next(_) | Stage::Trial(_)) => self.finish(index, Err(reason.to_owned())),
            Some(Stage::Back(first)) => {
                let reason = format!("{first}; the version before did not start again either: {reason}");
                self.finish(index, Err(reason));
            }
            _ => {}
        }
    }

    /// Gives up a reload, because of another order or the end of the version before. A successor is told to stop first.
    /// A reload that still loads goes on if the extension is on its way.
    pub(in super::super) fn give_up_reload(&mut self, index: usize, reason: &'static str) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        match slot.reload.as_mut().map(|reload| &mut reload.stage) {
            Some(stage @ Stage::Beside) => {
                *stage = Stage::GivenUp(reason);
                slot.successor.iter().for_each(Run::stop);
            }
            Some(Stage::Loading) if !slot.life.is_coming() => self.finish(index, Err(reason.to_owned())),
            _ => self.gave_up(index, reason),
        }
    }

    /// Ends the reload and answers its asker. `Ok` says whether the extension has changed.
    pub(super) fn finish(&mut self, index: usize, result: Result<bool, String>) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(Reload { asker, stage, is_final, held_back, .. }) = slot.reload.take() else { return };
        let (id, goes_back) = (slot.unit.id().clone(), slot.goes_back);
        let has_come_up = result.is_ok();
        if matches!(stage, Stage::Trial(Some(_))) {
            // The version before no longer comes back, so subscriptions without a grant can end.
            self.parts.bus.renew_subscriptions(&slot.unit.version().peer);
        }
        if result == Ok(true) {
            self.parts.logs.write(
                &id.as_str().into(),
                Level::Info,
                Source::Main,
                "reloaded",
                std::iter::empty(),
            );
        }
        if is_final && has_come_up {
            self.prove(index);
        }
        if let (Asker::Canary(number), Err(reason)) = (&asker, &result) {
            let text = format!("version {number} does not run in this instance: {reason}");
            self.parts.logs.write(&id.as_str().into(), Level::Warn, Source::Main, &text, std::iter::empty());
        }
        if matches!(asker, Asker::Versions(_)) && !has_come_up {
            self.stays(index);
        }
        if let (Asker::Versions(None), Err(reason)) = (&asker, &result) {
            let text = format!("the proven version does not come back: {reason}");
            self.parts.logs.write(&id.as_str().into(), Level::Warn, Source::Main, &text, std::iter::empty());
        }
        let result = held_back.map_or(result.clone(), |reason| result.and(Err(reason)));
        match asker {
            Asker::Configuration => self.reloaded(index, result),
            Asker::Restart(replies) => {
                let reason = result.err().unwrap_or_default();
                answer(replies, || Err(ControlError::NotStarted { id: id.clone(), reason: reason.clone() }));
            }
            Asker::Versions(None) => {}
            Asker::Canary(number) => self.follow(index, Some(index), number),
            Asker::Versions(Some(reply)) if result.is_ok() => self.save(index, Some(reply)),
            Asker::One(reply) | Asker::Versions(Some(reply)) => answer([reply], || match &result {
                Ok(_) => Ok(()),
                Err(reason) => Err(ControlError::NotReloaded { id: id.clone(), reason: reason.clone() }),
            }),
        }
        if goes_back {
            self.go_back(index, None);
        }
    }
}

//! Decides what follows the end of an instance, for its extension and for the requests that wait for it.

use std::time::SystemTime;

use tokio::time::Instant;
use weir_bus::{Phase, Request};
use weir_guest::Exit;
use weir_reports::ExtensionState;

use super::{Ended, InstanceRole, LifecycleEvent, Slot, Step, Supervisor};

impl Supervisor {
    pub(super) fn end(&mut self, ended: Ended) {
        ended.run.version.peer.end_instance();
        let (peer, run) = (ended.run.version.peer.id(), ended.run.signals.run());
        match self.slots.of_run(peer, run) {
            Some((index, InstanceRole::Current)) => self.current_ended(index, &ended),
            Some((index, InstanceRole::Successor)) => self.successor_ended(index, &ended),
            Some((index, InstanceRole::Predecessor)) => self.predecessor_ended(index, &ended),
            None => return,
        }
        if self.shutting_down {
            self.shut_down();
        }
    }

    pub(super) fn current_ended(&mut self, index: usize, ended: &Ended) {
        let at = self.began.elapsed();
        self.end_observation(index);
        self.count_all(index);
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.current = None;
        let was = slot.life.state();
        if let (Some(chosen), ExtensionState::Starting) = (&ended.end.instead, was) {
            return self.run_instead(index, chosen);
        }
        let change = self.fails(index, ended);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let clean = ended.end.exit == Exit::Finished;
        let is_killed = matches!(ended.end.exit, Exit::Killed(_)) && slot.life.comes_after_kill();
        let event = match is_killed {
            true => LifecycleEvent::Killed,
            false => LifecycleEvent::Ended {
                clean,
                hopeless: ended.end.is_hopeless,
                hindered: matches!(ended.end.exit, Exit::Hindered { .. }),
                at,
                draw: fastrand::f64(),
            },
        };
        let step = slot.apply(event);
        let change = match slot.life.state() {
            ExtensionState::Quarantined => change.or_else(|| self.fails_for_good(index, ended)),
            _ => change,
        };
        let Some(slot) = self.slots.get_mut(index) else { return };
        // Another version comes at once, whatever the delays and the quarantine of this one.
        let step = if change.is_some() { slot.apply(LifecycleEvent::Restart) } else { step };
        let state = slot.life.state();
        let as_it_should = match (was, &ended.end.exit) {
            (ExtensionState::Draining, Exit::Failed(_)) => true,
            // Even a clean end goes on record if it counts as a failure or causes a fallback.
            (_, Exit::Finished) => {
                matches!(state, ExtensionState::Stopped | ExtensionState::Loaded) && step != Step::FallBack
            }
            _ => false,
        };
        let reason = (!as_it_should || !clean).then(|| ended.end.exit.to_string());
        let unit = slot.unit.clone();
        let version = unit.version();
        // Without messages to wait for, a program is ready long before it ends, and still most likely brief.
        let is_plain = ended.run.version.program().is_some_and(|loaded| !loaded.program.knows_weir)
            && was != ExtensionState::Draining;
        ended.run.version.note_end(clean && (is_plain || was == ExtensionState::Starting));
        let mut next_restart = None;
        // The phase is set once, so that requests are neither refused in between nor left waiting.
        let is_succeeded = slot.is_succeeded()
            && (is_killed || matches!(state, ExtensionState::BackingOff | ExtensionState::Failed));
        let comes_again = is_succeeded || state == ExtensionState::Loaded;
        version.peer.set_phase(if comes_again { Phase::Replacing } else { Phase::Down });
        match (step, state) {
            _ if is_succeeded => {}
            (Step::Delay(delay), _) => {
                let due = Instant::now() + delay;
                slot.due = Some(due);
                next_restart = Some(SystemTime::now() + delay);
                self.turn_away(index);
            }
            (_, ExtensionState::Loaded) => {}
            (_, ExtensionState::Stopped) => self.disconnect(index),
            _ => self.turn_away(index),
        }
        if !matches!(state, ExtensionState::Loaded | ExtensionState::BackingOff) && !is_succeeded {
            // The next start comes from an order, and loads the file as it is then.
            version.forget_program();
        }
        if !as_it_should {
            let then = if is_succeeded { ExtensionState::Starting } else { state };
            self.record_failure(&unit, &ended.end, then, next_restart);
        }
        let reason = match state {
            ExtensionState::Quarantined => Some(self.why_quarantined(index, &ended.end.exit)),
            ExtensionState::Loaded => None,
            _ => reason,
        };
        self.set_state(index, state, reason.clone());
        match (step, state) {
            (Step::FallBack, _) => {
                let is_fault = !matches!(ended.end.exit, Exit::Hindered { .. } | Exit::Killed(_));
                self.fall_back(index, &ended.end.exit.to_string(), is_fault);
            }
            (_, ExtensionState::Loaded) if is_succeeded => self.adopt(index),
            (_, ExtensionState::Loaded) => self.put_next(index),
            _ => {
                let reason = reason.unwrap_or_else(|| "it finished before it was ready".to_owned());
                self.fail_starters(index, &reason);
                self.gave_up(index, &reason);
                self.adopt(index);
            }
        }
        self.answer_stoppers(index);
        if let Some(change) = change {
            self.decided(index, &change, None);
        }
    }

    /// Ends the subscriptions of a stopped or removed extension, and answers the requests that wait for it. If it or
    /// one that shares its inbox may come again, as after a failure, only [turns away](Self::turn_away) requests.
    pub(super) fn disconnect(&self, index: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        let comes = |slot: &Slot| {
            let state = slot.life.state();
            slot.is_listed
                && (slot.life.is_coming()
                    || matches!(
                        state,
                        ExtensionState::BackingOff | ExtensionState::Failed | ExtensionState::Quarantined
                    ))
        };
        let mut sharing = self.slots.sharing(index).into_iter().filter_map(|index| self.slots.get(index));
        match sharing.any(comes) {
            true => self.turn_away(index),
            false => self.parts.bus.disconnect(&slot.unit.version().peer),
        }
    }

    /// Answers the waiting requests whose deadlines pass before a restart that is due, or all if none is due. Does
    /// nothing while a peer takes requests at this inbox.
    pub(super) fn turn_away(&self, index: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        let sharing = self.slots.sharing(index).into_iter();
        let due = sharing.filter_map(|index| self.slots.get(index)?.due).min();
        let is_hopeless = |request: &Request| due.is_none_or(|due| request.responder.term().deadline <= due);
        slot.unit.version().peer.inbox().drop_requests(is_hopeless);
    }

    pub(super) fn why_quarantined(&self, index: usize, last: &Exit) -> String {
        let Some(slot) = self.slots.get(index) else { return String::new() };
        let (id, window) = (slot.unit.id(), slot.unit.version().config.restart.window);
        format!(
            "{} failures within {}, the last: {last}; `weir restart {id}` starts it again",
            slot.life.failures(),
            humantime::format_duration(window),
        )
    }

    /// Makes a restart delay under way keep to the restart policy, which may have changed. A delay that the policy does
    /// not provide for ends without a restart, and one that is too long is shortened.
    pub(super) fn keep_to_policy(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(due) = slot.due else { return };
        slot.apply(LifecycleEvent::Retuned);
        let state = slot.life.state();
        if state == ExtensionState::BackingOff {
            slot.due = Some(due.min(Instant::now() + slot.config.restart.max_backoff));
            return;
        }
        slot.due = None;
        let version = slot.unit.version();
        version.forget_program();
        version.peer.set_phase(Phase::Down);
        match state {
            ExtensionState::Stopped => self.disconnect(index),
            _ => self.turn_away(index),
        }
        let reason = "`restart.policy` does not start it again";
        self.set_state(index, state, Some(reason.to_owned()));
        self.fail_starters(index, reason);
        self.answer_stoppers(index);
    }

    /// Makes the extensions whose restart delay is over start as soon as they can.
    pub(super) fn end_delays(&mut self) {
        let now = Instant::now();
        for index in self.slots.those(|slot| slot.due.is_some_and(|due| due <= now)) {
            if let Some(slot) = self.slots.get_mut(index) {
                slot.due = None;
                slot.apply(LifecycleEvent::Due);
                let state = slot.life.state();
                self.set_state(index, state, None);
            }
        }
    }
}

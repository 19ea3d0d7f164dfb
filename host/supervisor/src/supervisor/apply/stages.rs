//! The stages of a configuration reload: what each begins with, and whether it holds, so that the next one begins.
//!
//! Without stages, all extensions are of one, and it need not hold.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use weir_bus::Phase;
use weir_config::ExtensionConfig;
use weir_names::ExtensionId;
use weir_reports::{ExtensionState, ServingVersion, Standing};

use super::{
    super::{Supervisor, slots::Slot},
    Applying, NotReloaded, Part,
};
use crate::roster::Unit;

/// When a stage of a reload holds, so that the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// Once all its extensions have come up.
    Up,
    /// Once all its extensions have come up, and those with `update` are proven.
    Proven,
}

/// How long a stage may wait for its versions to be proven.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    until: Instant,
    longest: Duration,
}

/// A version is proven once it has run for its `prove-for`. One that often restarts may take this much longer.
const PATIENCE: u32 = 2;

impl Applying {
    /// When a stage that waits for its versions to be proven gives up.
    pub(in super::super) fn next_due(&self) -> Option<Instant> {
        self.waiting.map(|waiting| waiting.until)
    }

    /// Waits until the asker has left.
    pub(in super::super) async fn left(&mut self) {
        self.reply.closed().await;
    }

    /// Whether this extension may change.
    fn is_meant(&self, extension: &ExtensionConfig) -> bool {
        let own = extension.copy_of.as_ref().unwrap_or(&extension.id);
        self.only.as_ref().is_none_or(|only| only == own)
    }

    /// Whether this extension is of the present stage.
    pub(super) fn is_now(&self, id: &ExtensionId) -> bool {
        self.stage_of(id) == self.stage
    }

    fn stage_of(&self, id: &ExtensionId) -> usize {
        self.stages.get(id).copied().unwrap_or(1)
    }
}

impl Supervisor {
    /// Puts the configuration of this stage's extensions into effect, and notes what has to stop, start and change for
    /// it. All other extensions stay configured as they are.
    pub(super) fn begin_stage(&mut self) {
        let Some(mut applying) = self.applying.take() else { return };
        let main = self.parts.roster.main();
        let (mut listed, mut new) = (Vec::new(), Vec::new());
        (applying.added, applying.up, applying.after) = (Vec::new(), Vec::new(), Vec::new());
        for extension in &applying.configured {
            let known = self.slots.find_ever(&extension.id);
            let was_listed = known.and_then(|index| self.slots.get(index)).is_some_and(|slot| slot.is_listed);
            if applying.stage_of(&extension.id) != applying.stage {
                listed.extend(known.filter(|_| was_listed));
                continue;
            }
            let extension = extension.clone();
            let index = match known {
                Some(index) if was_listed && !applying.is_meant(&extension) => index,
                Some(index) if was_listed => {
                    let running = self.slots.get(index).map(|slot| slot.unit.configured());
                    let difference = running.and_then(|running| running.table_difference(&extension));
                    applying.report.differences.extend(difference);
                    applying.kept.push((index, extension));
                    index
                }
                Some(index) => {
                    self.exchange(index, extension, &main);
                    applying.added.push(index);
                    index
                }
                None => {
                    let original = extension.copy_of.as_ref().and_then(|id| self.slots.find_ever(id));
                    let original = original.and_then(|index| self.slots.get(index));
                    let original = original.map(|slot| slot.unit.version().peer.clone());
                    let (bus, logs) = (&self.parts.bus, self.parts.logs.clone());
                    let unit = Arc::new(Unit::on_the_bus(extension, &main, bus, original.as_deref(), logs));
                    new.push(unit.clone());
                    let index = self.slots.push(unit);
                    applying.added.push(index);
                    index
                }
            };
            listed.push(index);
        }
        let all: BTreeSet<usize> = listed.iter().copied().collect();
        let gone = self.slots.iter().filter(|(index, slot)| slot.is_listed && !all.contains(index));
        let gone = gone.map(|(index, slot)| (index, applying.stage_of(slot.unit.id())));
        let (removed, later): (Vec<_>, Vec<_>) = gone.partition(|(_, stage)| *stage == applying.stage);
        applying.removed = removed.into_iter().map(|(index, _)| index).collect();
        listed.extend(later.into_iter().map(|(index, _)| index));
        let unit = |index: &usize| self.slots.get(*index).map(|slot| slot.unit.clone());
        let units: Vec<_> = listed.iter().filter_map(unit).collect();
        self.parts.versions.configure(units.iter().map(|unit| unit.id().clone()));
        self.parts.roster.list(units, new);
        for index in listed {
            self.slots.get_mut(index).into_iter().for_each(|slot| slot.is_listed = true);
        }
        for index in &applying.removed {
            if let Some(slot) = self.slots.get_mut(*index) {
                slot.is_listed = false;
                slot.unit.asked("reload", &applying.by);
            }
            // The order of stops is that of the configuration before.
            applying.after.push((*index, self.slots.after(*index).to_vec()));
        }
        applying.unstopped = applying.removed.clone();
        self.slots.connect();
        for index in &applying.added {
            let Some(slot) = self.slots.get(*index) else { continue };
            slot.unit.asked("reload", &applying.by);
            if slot.config.autostart && slot.life.state() != ExtensionState::Quarantined {
                // Requests to the new extension wait until it is ready.
                slot.unit.version().peer.set_phase(Phase::Starting);
            }
        }
        applying.part = Part::Removing;
        self.applying = Some(applying);
    }

    pub(super) fn is_in_stages(&self) -> bool {
        self.applying.as_ref().is_some_and(|applying| applying.holds.is_some())
    }

    /// Begins to wait until all that has changed in this stage holds.
    pub(super) fn begin_holding(&mut self) {
        let Some(applying) = &mut self.applying else { return };
        applying.part = Part::Holding;
        let updates =
            applying.up.iter().filter_map(|(index, _)| self.slots.get(*index)?.config.update.as_ref());
        let longest = updates.map(|update| update.prove_for).max();
        let longest = longest.filter(|_| applying.holds == Some(Holds::Proven));
        applying.waiting =
            longest.map(|longest| Waiting { until: Instant::now() + longest * PATIENCE, longest });
        // What holds already is not judged again while others are waited for.
        let Some(mut applying) = self.applying.take() else { return };
        let mut up = std::mem::take(&mut applying.up);
        up.retain(|up| self.holds(&applying, *up) != Some(Ok(())));
        applying.up = up;
        self.applying = Some(applying);
    }

    /// Whether it is still open if this stage holds. It is not if one extension does not, or if nobody waits any more.
    pub(super) fn is_open(&self) -> bool {
        let Some(applying) = &self.applying else { return false };
        if self.is_over(applying) {
            return false;
        }
        let held: Vec<_> = applying.up.iter().map(|up| self.holds(applying, *up)).collect();
        held.contains(&None) && !held.iter().flatten().any(Result::is_err)
    }

    /// Whether no further stage may begin, whatever its extensions do.
    fn is_over(&self, applying: &Applying) -> bool {
        applying.holds.is_none()
            || self.shutting_down
            || applying.reply.is_closed()
            || !applying.report.failed.is_empty()
    }

    /// Ends the present stage. Begins the next one and returns true, if there is one and all extensions hold.
    pub(super) fn end_stage(&mut self) -> bool {
        let Some(applying) = &self.applying else { return false };
        if applying.holds.is_none() {
            return false;
        }
        let fault = |up: &(usize, Option<u64>)| match self.holds(applying, *up) {
            Some(Err(reason)) => {
                Some(NotReloaded { extension: self.slots.get(up.0)?.unit.id().clone(), reason })
            }
            _ => None,
        };
        let faults: Vec<_> = applying.up.iter().filter_map(fault).collect();
        let is_over = self.is_over(applying) || !faults.is_empty();
        let Some(applying) = &mut self.applying else { return false };
        applying.waiting = None;
        let failed: HashSet<_> = faults.iter().map(|fault| fault.extension.clone()).collect();
        for ids in [&mut applying.report.added, &mut applying.report.changed] {
            ids.retain(|id| !failed.contains(id));
        }
        applying.report.failed.extend(faults);
        let stage = applying.stage;
        let later = applying.stages.iter().filter(|(_, later)| **later > stage);
        let mut later: Vec<_> = later.map(|(id, later)| (*later, id.clone())).collect();
        if !is_over && !later.is_empty() {
            applying.stage += 1;
            self.begin_stage();
            return true;
        }
        if is_over {
            later.sort_unstable();
            if applying.reply.is_closed() {
                let not_reached = later.len();
                tracing::warn!(
                    target: "weir",
                    "the reload ends with stage {stage}, since nobody waits for it: {not_reached} extensions not reached"
                );
            }
            applying.report.stopped_at = Some(stage);
            applying.report.not_reached = later.into_iter().map(|(_, id)| id).collect();
        }
        false
    }

    /// Whether an extension that has come up with this version holds, or why it does not. None while that is open.
    fn holds(
        &self,
        applying: &Applying,
        (index, number): (usize, Option<u64>),
    ) -> Option<Result<(), String>> {
        let Some(slot) = self.slots.get(index) else { return Some(Ok(())) };
        let config = &slot.config;
        let id = config.copy_of.as_ref().unwrap_or(&config.id);
        let serving = config.update.as_ref().and_then(|_| self.parts.versions.serving(id, number));
        if let Some(ServingVersion { number, standing, is_held_back }) = serving
            && (is_held_back || standing == Standing::Refused)
        {
            let update = config.update.clone().unwrap_or_default();
            let status = self.parts.versions.status(id, &update);
            let reason = status.and_then(|status| {
                let refused = status.versions.into_iter().find(|version| version.number == number);
                let reason = refused.and_then(|version| version.reason);
                status.held_back.or(reason.map(|reason| format!("version {number} was refused: {reason}")))
            });
            return Some(Err(reason.unwrap_or_else(|| format!("version {number} was refused"))));
        }
        if let (Some(number), Some(_), None) = (number, &config.update, serving) {
            return Some(Err(format!("another version took the place of version {number}")));
        }
        let state = slot.life.state();
        let because = || match slot.unit.status().reason {
            Some(reason) => format!("it is {state}: {reason}"),
            None => format!("it is {state}"),
        };
        let is_on_probation = serving.is_some_and(|version| version.standing == Standing::Probation);
        if let Some(Waiting { until, longest }) = applying.waiting.filter(|_| is_on_probation) {
            use ExtensionState::{Failed, Quarantined, Stopped};
            return match state {
                Failed | Quarantined | Stopped => Some(Err(format!("{} before it was proven", because()))),
                _ if Instant::now() >= until => {
                    let longest = humantime::format_duration(longest * PATIENCE);
                    Some(Err(format!("it is not proven after {longest}: it did not run all the time")))
                }
                _ => None,
            };
        }
        let others = || self.slots.sharing(index).into_iter().filter_map(|other| self.slots.get(other));
        let is_canary = config.canary.as_ref() == Some(slot.unit.id());
        use ExtensionState::{BackingOff, Failed, Quarantined};
        if let Some(Waiting { until, .. }) = applying.waiting.filter(|_| serving.is_some() && is_canary) {
            // The other instances follow their canary.
            let is_behind = |other: &Slot| other.unit.version().number() != number;
            let comes = |other: &Slot| other.life.is_coming() || other.life.state() == BackingOff;
            let is_open = |other: &Slot| other.reload.is_some() || (is_behind(other) && comes(other));
            if Instant::now() < until && others().any(is_open) {
                return None;
            }
            if let Some(other) =
                others().find(|other| is_behind(other) && (comes(other) || other.life.is_there()))
            {
                let id = other.unit.id();
                return Some(Err(format!(
                    "it is proven, but does not run in `{id}`: `weir logs {id}` says why"
                )));
            }
        }
        Some(if matches!(state, BackingOff | Failed | Quarantined) { Err(because()) } else { Ok(()) })
    }
}

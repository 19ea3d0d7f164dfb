//! The extensions of one Main as the supervisor sees them: who is wanted, who runs, who waits for
//! whom. Decides nothing about a message and starts nothing.

use std::{panic::AssertUnwindSafe, sync::Arc, time::SystemTime};

use futures_util::FutureExt;

use crate::{
    bus::{PeerId, Phase},
    extension::{Exit, Handling, Instance, Programs, Signals},
    logs::harmless,
    names::{ContractName, ExtensionId},
    roster::{State, Unit},
};

/// How one instance ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) index: usize,
    pub(super) exit: Exit,
    pub(super) handling: Option<Handling>,
    pub(super) hash: Option<[u8; 32]>,
    /// When that was.
    pub(super) time: SystemTime,
}

/// One instance, from its file to its end. A panic under it is its end, not Main's.
pub(super) async fn run(index: usize, programs: Arc<Programs>, instance: Instance) -> Ended {
    let signals = instance.signals.clone();
    let config = instance.config.clone();
    let loaded = tokio::select! {
        loaded = programs.load(&config.path, &config.limits) => loaded,
        () = signals.stopped() => {
            return Ended { index, exit: Exit::Finished, handling: None, hash: None, time: SystemTime::now() };
        }
    };
    let (program, _kept_for_others) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let exit = Exit::Start { reason: chain(&error), limit: None };
            return Ended { index, exit, handling: None, hash: None, time: SystemTime::now() };
        }
    };
    let hash = Some(program.hash);
    let (exit, handling, time) = match AssertUnwindSafe(instance.run(program)).catch_unwind().await {
        Ok(end) => end,
        Err(panic) => (Exit::Panicked(panic_text(&*panic)), None, SystemTime::now()),
    };
    Ended { index, exit, handling, hash, time }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    harmless(text.unwrap_or("panic"), 1024)
}

/// Every extension, in the order of their configuration.
#[derive(Debug)]
pub(super) struct Units {
    units: Arc<[Arc<Unit>]>,
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// It is to run, and is started as soon as what it requires is ready.
    wanted: bool,
    /// Its task, while there is one.
    running: Option<Arc<Signals>>,
}

impl Units {
    pub(super) fn new(units: Arc<[Arc<Unit>]>) -> Self {
        let slots = units.iter().map(|_| Slot::default()).collect();
        Self { units, slots }
    }

    pub(super) fn unit(&self, index: usize) -> Option<&Arc<Unit>> {
        self.units.get(index)
    }

    pub(super) fn find(&self, id: &ExtensionId) -> Option<usize> {
        self.units.iter().position(|unit| unit.id() == id)
    }

    /// The extension, if it is still in that run.
    pub(super) fn of_run(&self, peer: PeerId, run: u64) -> Option<usize> {
        // Main is peer 0; extensions follow in order.
        let index = usize::try_from(peer.0.checked_sub(1)?).ok()?;
        (self.slots.get(index)?.running.as_ref()?.run() == run).then_some(index)
    }

    pub(super) fn state(&self, index: usize) -> State {
        self.unit(index).map_or(State::Stopped, |unit| unit.state())
    }

    pub(super) fn want_autostart(&mut self) {
        for (unit, slot) in self.units.iter().zip(&mut self.slots) {
            slot.wanted = unit.config.autostart;
        }
        for index in 0..self.units.len() {
            if self.slots.get(index).is_some_and(|slot| slot.wanted) {
                self.want(index);
            }
        }
    }

    /// Wants an extension to run, and what it requires.
    pub(super) fn want(&mut self, index: usize) {
        let mut open = vec![index];
        let mut seen = vec![false; self.units.len()];
        while let Some(index) = open.pop() {
            if std::mem::replace(seen.get_mut(index).unwrap_or(&mut true), true) {
                continue;
            }
            if let (Some(unit), Some(slot)) = (self.units.get(index), self.slots.get_mut(index)) {
                slot.wanted = true;
                if slot.running.is_none() {
                    // From now on requests wait for it.
                    unit.peer.set_phase(Phase::Starting);
                }
            }
            open.extend(self.required_by(index).into_iter().map(|(owner, _)| owner));
        }
    }

    pub(super) fn unwant(&mut self, index: usize) {
        if let (Some(unit), Some(slot)) = (self.units.get(index), self.slots.get_mut(index)) {
            let was_waiting = std::mem::take(&mut slot.wanted) && slot.running.is_none();
            if was_waiting {
                unit.peer.set_phase(Phase::Down);
                unit.peer.inbox().clear();
            }
        }
    }

    pub(super) fn unwant_all(&mut self) {
        for index in 0..self.units.len() {
            self.unwant(index);
        }
    }

    /// Those that are wanted, do not run, and have all that they require.
    pub(super) fn startable(&self) -> Vec<usize> {
        let waits = |index: &usize| self.is_waiting(*index);
        let has_all = |index: &usize| {
            self.required_by(*index)
                .iter()
                .all(|&(owner, _)| matches!(self.state(owner), State::Ready | State::Interrupted))
        };
        (0..self.units.len()).filter(waits).filter(has_all).collect()
    }

    /// Those that wait to be started until `owner` is ready, and for which of its contracts.
    pub(super) fn waiting_for(&self, owner: usize) -> Vec<(usize, ContractName)> {
        (0..self.units.len())
            .filter(|&index| self.is_waiting(index))
            .filter_map(|index| {
                let (_, contract) = self.required_by(index).into_iter().find(|&(found, _)| found == owner)?;
                Some((index, contract))
            })
            .collect()
    }

    /// Those that run and that nobody who runs requires.
    pub(super) fn stoppable(&self) -> Vec<usize> {
        let required: Vec<usize> = (0..self.units.len())
            .filter(|&index| self.is_running(index))
            .flat_map(|index| self.required_by(index))
            .map(|(owner, _)| owner)
            .collect();
        (0..self.units.len()).filter(|index| self.is_running(*index) && !required.contains(index)).collect()
    }

    /// Whether nothing is on its way to being ready.
    pub(super) fn is_settled(&self) -> bool {
        (0..self.units.len()).all(|index| !self.is_waiting(index) && self.state(index) != State::Starting)
    }

    pub(super) fn is_running(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.running.is_some())
    }

    pub(super) fn running(&self, index: usize) -> Option<(Arc<Unit>, Arc<Signals>)> {
        Some((self.unit(index)?.clone(), self.slots.get(index)?.running.clone()?))
    }

    pub(super) fn launched(&mut self, index: usize, signals: Arc<Signals>) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.running = Some(signals);
        }
    }

    pub(super) fn ended(&mut self, index: usize) -> Option<Arc<Unit>> {
        *self.slots.get_mut(index)? = Slot::default();
        self.unit(index).cloned()
    }

    fn is_waiting(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.wanted && slot.running.is_none())
    }

    /// The owners of what an extension requires; contracts that Main serves have none.
    fn required_by(&self, index: usize) -> Vec<(usize, ContractName)> {
        let Some(unit) = self.unit(index) else { return Vec::new() };
        let owner = |contract: &ContractName| {
            self.units.iter().position(|unit| unit.config.fulfills.contains(contract))
        };
        unit.config
            .requires
            .iter()
            .filter_map(|contract| Some((owner(contract)?, contract.clone())))
            .collect()
    }
}

//! The extensions of one Main as the supervisor sees them: in which part of its life each is, which of
//! its instances run, and who requires whom. Starts and stops nothing.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tokio::time::Instant;

use super::{
    Reply,
    lifecycle::{Event, Lifecycle, Step},
    reload::Reload,
    run::Run,
};
use crate::{
    bus::PeerId,
    names::{ContractName, ExtensionId},
    roster::Unit,
};

/// One extension.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) unit: Arc<Unit>,
    pub(super) life: Lifecycle,
    /// The instance that is the extension.
    pub(super) current: Option<Run>,
    /// One of another version that is to be, once it is ready.
    pub(super) successor: Option<Run>,
    /// One that was, and finishes.
    pub(super) predecessor: Option<Run>,
    pub(super) reload: Option<Reload>,
    /// When it is started again.
    pub(super) due: Option<Instant>,
    /// Who waits for it to be ready.
    pub(super) starters: Vec<Reply>,
    /// Who waits for it to have ended.
    pub(super) stoppers: Vec<Reply>,
    /// It is configured.
    pub(super) is_listed: bool,
}

/// Which of an extension's instances a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Current,
    Successor,
    Predecessor,
}

impl Slot {
    pub(super) fn new(unit: Arc<Unit>) -> Self {
        Self {
            unit,
            life: Lifecycle::new(),
            current: None,
            successor: None,
            predecessor: None,
            reload: None,
            due: None,
            starters: Vec::new(),
            stoppers: Vec::new(),
            is_listed: true,
        }
    }

    pub(super) fn apply(&mut self, event: Event) -> Step {
        self.life.apply(event, &self.unit.version().config.restart)
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        [&self.current, &self.successor, &self.predecessor].into_iter().flatten()
    }

    pub(super) fn part(&self, run: u64) -> Option<Part> {
        let is = |of: &Option<Run>| of.as_ref().is_some_and(|of| of.signals.run() == run);
        [
            (Part::Current, &self.current),
            (Part::Successor, &self.successor),
            (Part::Predecessor, &self.predecessor),
        ]
        .into_iter()
        .find_map(|(part, of)| is(of).then_some(part))
    }
}

/// Every extension that there is or was; the number of each is that of its peer, less one.
#[derive(Debug)]
pub(super) struct Slots {
    all: Vec<Slot>,
    /// Who fulfills which contract, by the version that runs next.
    owners: HashMap<ContractName, usize>,
}

impl Slots {
    pub(super) fn new(units: Vec<Arc<Unit>>) -> Self {
        let mut slots = Self { all: units.into_iter().map(Slot::new).collect(), owners: HashMap::new() };
        slots.find_owners();
        slots
    }

    pub(super) fn push(&mut self, unit: Arc<Unit>) -> usize {
        self.all.push(Slot::new(unit));
        self.all.len() - 1
    }

    /// To be said when what extensions fulfill has changed.
    pub(super) fn find_owners(&mut self) {
        let listed = self.all.iter().enumerate().filter(|(_, slot)| slot.is_listed);
        self.owners = listed
            .flat_map(|(index, slot)| {
                let config = slot.unit.version().config.clone();
                config.fulfills.clone().into_iter().map(move |contract| (contract, index))
            })
            .collect();
    }

    pub(super) fn get(&self, index: usize) -> Option<&Slot> {
        self.all.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        self.all.get_mut(index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.all.iter().enumerate()
    }

    /// A configured extension.
    pub(super) fn find(&self, id: &ExtensionId) -> Option<usize> {
        self.all.iter().position(|slot| slot.is_listed && slot.unit.id() == id)
    }

    /// One that is configured, or was.
    pub(super) fn find_ever(&self, id: &ExtensionId) -> Option<usize> {
        self.all.iter().position(|slot| slot.unit.id() == id)
    }

    /// The extension of a run, if that goes on.
    pub(super) fn of_run(&self, peer: PeerId, run: u64) -> Option<(usize, Part)> {
        // Main is peer 0; extensions follow in order.
        let index = usize::try_from(peer.0.checked_sub(1)?).ok()?;
        Some((index, self.get(index)?.part(run)?))
    }

    /// Those who would be started now, if what they require is ready.
    pub(super) fn waiting(&self) -> Vec<usize> {
        self.iter().filter(|(_, slot)| slot.life.is_waiting()).map(|(index, _)| index).collect()
    }

    /// The owners of what an extension requires; contracts that Main serves have none.
    pub(super) fn required_by(&self, index: usize) -> Vec<(usize, ContractName)> {
        let Some(slot) = self.get(index) else { return Vec::new() };
        let config = slot.unit.version().config.clone();
        let owned = |contract: &ContractName| Some((*self.owners.get(contract)?, contract.clone()));
        config.requires.iter().filter_map(owned).collect()
    }

    /// An extension, and all that it cannot do without.
    pub(super) fn with_required(&self, index: usize) -> BTreeSet<usize> {
        let (mut all, mut open) = (BTreeSet::new(), vec![index]);
        while let Some(index) = open.pop() {
            if all.insert(index) {
                open.extend(self.required_by(index).into_iter().map(|(owner, _)| owner));
            }
        }
        all
    }

    /// Those of which instances run, and whom nobody who runs requires.
    pub(super) fn stoppable(&self) -> Vec<usize> {
        let runs = |(_, slot): &(usize, &Slot)| slot.runs().next().is_some();
        let required: BTreeSet<usize> = self
            .iter()
            .filter(runs)
            .flat_map(|(index, _)| self.required_by(index))
            .map(|(owner, _)| owner)
            .collect();
        self.iter().filter(runs).map(|(index, _)| index).filter(|index| !required.contains(index)).collect()
    }
}

//! The supervisor's table of extensions: lives, running instances and requirements. Starts and stops nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use tokio::time::Instant;
use weir_bus::{Bus, PeerId};
use weir_config::ExtensionConfig;
use weir_names::{ContractName, ExtensionId};

use super::{
    OrderReply,
    lifecycle::{Lifecycle, LifecycleEvent, Step},
    order,
    reload::Reload,
    run::Run,
    versions::Observation,
    waiting::Alternative,
};
use crate::roster::{Unit, Version};

/// How many extensions that are no longer configured keep their counts and history, in case they come back.
const KEPT_REMOVED: usize = 16;

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) unit: Arc<Unit>,
    /// The configuration of the version that runs next.
    pub(super) config: Arc<ExtensionConfig>,
    pub(super) life: Lifecycle,
    pub(super) current: Option<Run>,
    /// An instance of another version, which becomes current once it is ready.
    pub(super) successor: Option<Run>,
    /// The former current instance, which finishes.
    pub(super) predecessor: Option<Run>,
    pub(super) reload: Option<Reload>,
    /// What is counted of the version that runs, if the extension has `update`.
    pub(super) observation: Option<Observation>,
    /// Whether the version that runs was refused while a reload was under way.
    pub(super) goes_back: bool,
    /// Whether another version can start, since the configured one cannot.
    pub(super) alternative: Alternative,
    /// When the restart delay ends, if one is under way.
    pub(super) due: Option<Instant>,
    /// Orders that are answered when the extension is ready or interrupted, or did not start.
    pub(super) starters: Vec<OrderReply>,
    /// Orders that are answered when the extension has ended.
    pub(super) stoppers: Vec<OrderReply>,
    /// Whether the extension is configured now.
    pub(super) is_listed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstanceRole {
    Current,
    Successor,
    Predecessor,
}

impl Slot {
    pub(super) fn new(unit: Arc<Unit>) -> Self {
        Self {
            config: unit.version().config.clone(),
            unit,
            life: Lifecycle::new(),
            current: None,
            successor: None,
            predecessor: None,
            reload: None,
            observation: None,
            goes_back: false,
            alternative: Alternative::Unknown,
            due: None,
            starters: Vec::new(),
            stoppers: Vec::new(),
            is_listed: true,
        }
    }

    pub(super) fn apply(&mut self, event: LifecycleEvent) -> Step {
        self.life.apply(event, &self.config.restart)
    }

    /// Whether another version starts beside the current instance. It takes over when it is ready, or when the current
    /// instance fails.
    pub(super) fn is_succeeded(&self) -> bool {
        self.successor.is_some() && self.reload.as_ref().is_some_and(Reload::is_beside)
    }

    /// Returns a version that has served and whose program is still loaded. That is the next version, or else the
    /// running one.
    pub(super) fn proven(&self) -> Option<Arc<Version>> {
        let runs = self.current.iter().map(|run| run.version.clone());
        std::iter::once(self.unit.version()).chain(runs).find(|version| version.is_proven())
    }

    /// Returns the id of the extension that owns the inbox: the original of a copy, or else the extension itself.
    fn original(&self) -> &ExtensionId {
        self.config.copy_of.as_ref().unwrap_or(self.unit.id())
    }

    /// When the supervisor must act on the slot next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let look = self.observation.as_ref().and_then(|it| it.look);
        self.due.into_iter().chain(look).min()
    }

    /// Says what is served after a version could not be loaded, as the end of a sentence.
    pub(super) fn what_serves_on(&self, is_refused: bool) -> &'static str {
        match (is_refused, self.life.is_there()) {
            (true, _) => "; what runs may not run any more, and is stopped",
            (false, true) => "; the version before serves on",
            (false, false) => "",
        }
    }

    /// Whether the extension is no longer configured, and nothing of it is under way.
    fn is_over(&self) -> bool {
        let is_asked = !self.starters.is_empty() || !self.stoppers.is_empty() || self.reload.is_some();
        !self.is_listed && !is_asked && self.runs().next().is_none()
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        [&self.current, &self.successor, &self.predecessor].into_iter().flatten()
    }

    /// Returns the role of the instance with this run, unless the run is over.
    pub(super) fn part(&self, run: u64) -> Option<InstanceRole> {
        let is = |of: &Option<Run>| of.as_ref().is_some_and(|of| of.signals.run() == run);
        [
            (InstanceRole::Current, &self.current),
            (InstanceRole::Successor, &self.successor),
            (InstanceRole::Predecessor, &self.predecessor),
        ]
        .into_iter()
        .find_map(|(part, of)| is(of).then_some(part))
    }
}

/// Every extension since Main started that was not [forgotten](Slots::forget_removed). Its index is its peer number minus
/// 1.
#[derive(Debug)]
pub(super) struct Slots {
    all: BTreeMap<usize, Slot>,
    next: usize,
    by_id: HashMap<ExtensionId, usize>,
    /// Extensions that are no longer configured, in the order in which they were removed.
    removed: Vec<usize>,
    /// The contracts that Main serves.
    serves: Vec<ContractName>,
    /// Knows which contracts programs outside Main serve.
    bus: Arc<Bus>,
    /// The owner of each contract, by the configurations of the versions that run next.
    owners: HashMap<ContractName, usize>,
    /// For each extension, the extensions that it starts after and stops before.
    after: Vec<Vec<usize>>,
}

impl Slots {
    pub(super) fn new(units: Vec<Arc<Unit>>, serves: Vec<ContractName>, bus: Arc<Bus>) -> Self {
        let (all, by_id, owners) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        let (removed, after) = (Vec::new(), Vec::new());
        let mut slots = Self { all, next: 0, by_id, removed, serves, bus, owners, after };
        for unit in units {
            slots.push(unit);
        }
        slots.connect();
        slots
    }

    pub(super) fn push(&mut self, unit: Arc<Unit>) -> usize {
        let index = self.next;
        self.next += 1;
        self.by_id.insert(unit.id().clone(), index);
        self.all.insert(index, Slot::new(unit));
        index
    }

    /// Drops extensions that are no longer configured and have ended, but for the last 16. Returns them. One that has
    /// copies goes with these.
    pub(super) fn forget_removed(&mut self) -> Vec<Arc<Unit>> {
        let now = self.those(|slot| !slot.is_listed);
        self.removed.retain(|index| now.binary_search(index).is_ok());
        let new: Vec<_> = now.into_iter().filter(|index| !self.removed.contains(index)).collect();
        self.removed.extend(new);
        let excess = self.removed.len().saturating_sub(KEPT_REMOVED);
        let mut forgotten = Vec::new();
        for index in self.removed.iter().take(excess).copied().collect::<Vec<_>>() {
            let together =
                self.get(index).map(|slot| self.instances_ever(slot.original())).unwrap_or_default();
            let is_over = |index: &usize| self.get(*index).is_some_and(Slot::is_over);
            if !together.iter().all(is_over) {
                continue;
            }
            for slot in together.iter().filter_map(|index| self.all.remove(index)) {
                self.by_id.remove(slot.unit.id());
                forgotten.push(slot.unit);
            }
        }
        self.removed.retain(|index| self.all.contains_key(index));
        forgotten
    }

    /// Works out owners and order anew, after the configured extensions or what they fulfill, require or want has
    /// changed.
    pub(super) fn connect(&mut self) {
        let owns = |slot: &Slot| slot.is_listed && slot.config.copy_of.is_none();
        let listed = self.iter().filter(|(_, slot)| owns(slot));
        self.owners = listed
            .flat_map(|(index, slot)| {
                slot.config.fulfills.iter().map(move |contract| (contract.clone(), index))
            })
            .collect();
        let owners = |contracts: Vec<&ContractName>| -> Vec<usize> {
            contracts.into_iter().filter_map(|contract| self.owners.get(contract).copied()).collect()
        };
        let by_index = |contracts: fn(&ExtensionConfig) -> Vec<&ContractName>| -> Vec<_> {
            let of = |index| self.get(index).map(|slot| owners(contracts(&slot.config))).unwrap_or_default();
            (0..self.next).map(of).collect()
        };
        let required = by_index(|config| config.requires.iter().collect());
        self.after = order::after(&required, &by_index(|config| config.wanted().collect()));
    }

    /// Returns the extensions that this one starts after and stops before.
    pub(super) fn after(&self, index: usize) -> &[usize] {
        self.after.get(index).map_or(&[], Vec::as_slice)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Slot> {
        self.all.get(&index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        self.all.get_mut(&index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.all.iter().map(|(index, slot)| (*index, slot))
    }

    pub(super) fn those(&self, are: impl Fn(&Slot) -> bool) -> Vec<usize> {
        self.iter().filter(|(_, slot)| are(slot)).map(|(index, _)| index).collect()
    }

    /// Finds a configured extension by its id.
    pub(super) fn find(&self, id: &ExtensionId) -> Option<usize> {
        self.find_ever(id).filter(|index| self.get(*index).is_some_and(|slot| slot.is_listed))
    }

    /// Finds an extension by its id, even if it is no longer configured, unless it was forgotten.
    pub(super) fn find_ever(&self, id: &ExtensionId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Returns the extension of a run and the role of its instance, unless the run is over.
    pub(super) fn of_run(&self, peer: PeerId, run: u64) -> Option<(usize, InstanceRole)> {
        // Main is peer 0; extensions follow in order.
        let index = usize::try_from(peer.0.checked_sub(1)?).ok()?;
        Some((index, self.get(index)?.part(run)?))
    }

    /// Returns an extension and all configured extensions that serve the same inbox.
    pub(super) fn sharing(&self, index: usize) -> Vec<usize> {
        let Some(own) = self.get(index) else { return Vec::new() };
        let is_listed = |other: usize| self.get(other).is_some_and(|slot| slot.is_listed);
        let all = self.instances_ever(own.original()).into_iter();
        all.filter(|other| *other == index || is_listed(*other)).collect()
    }

    /// Returns an extension and its copies, with those that are no longer configured.
    fn instances_ever(&self, original: &ExtensionId) -> Vec<usize> {
        // Copies are numbered without gaps.
        let copies = (2..).map_while(|number| self.find_ever(&original.copy(number)));
        self.find_ever(original).into_iter().chain(copies).collect()
    }

    /// Returns the extensions that start as soon as what they require is ready.
    pub(super) fn waiting(&self) -> Vec<usize> {
        self.those(|slot| slot.life.is_waiting())
    }

    /// Returns the extensions that own what this one requires. Contracts served by Main or by programs outside have no
    /// such owner.
    pub(super) fn required_by(&self, index: usize) -> impl Iterator<Item = usize> {
        let requires = self.get(index).map(|slot| &slot.config.requires).into_iter().flatten();
        requires.filter_map(|contract| self.owners.get(contract).copied())
    }

    /// Returns the required contracts that nobody serves now, each with the extension that owns it, if any.
    pub(super) fn unmet<'a>(
        &'a self,
        config: &'a ExtensionConfig,
    ) -> impl Iterator<Item = (Option<usize>, &'a ContractName)> {
        let owned = |contract| (self.owners.get(contract).copied(), contract);
        let is_there = |owner: &usize| self.get(*owner).is_some_and(|slot| slot.life.is_there());
        config.requires.iter().map(owned).filter(move |(owner, contract)| match owner {
            Some(owner) => !is_there(owner),
            None => !self.serves.contains(contract) && !self.bus.is_served(contract),
        })
    }

    /// Returns the extensions that start, or may start as another version, and the waiting ones whose requirements are
    /// there or come from these. Extensions that wait for each other are left out.
    pub(super) fn coming(&self) -> BTreeSet<usize> {
        let is_asked = |slot: &Slot| matches!(slot.alternative, Alternative::Asked(..));
        let moving = self.those(|slot| slot.life.is_coming() && (!slot.life.is_waiting() || is_asked(slot)));
        let mut coming: BTreeSet<usize> = moving.into_iter().collect();
        let mut waiting = self.waiting();
        loop {
            let before = waiting.len();
            waiting.retain(|&index| {
                let Some(slot) = self.get(index) else { return false };
                let comes = |owner: Option<usize>| owner.is_some_and(|owner| coming.contains(&owner));
                let is_coming = self.unmet(&slot.config).all(|(owner, _)| comes(owner));
                if is_coming {
                    coming.insert(index);
                }
                !is_coming
            });
            if waiting.len() == before {
                return coming;
            }
        }
    }

    /// Returns an extension and all extensions that it requires, directly or through others.
    pub(super) fn with_required(&self, index: usize) -> BTreeSet<usize> {
        let (mut all, mut open) = (BTreeSet::new(), vec![index]);
        while let Some(index) = open.pop() {
            if all.insert(index) {
                open.extend(self.required_by(index));
            }
        }
        all
    }

    /// Returns the running extensions that need not wait for another one to stop first. Returns all running ones if
    /// each has to wait, because of a circle of requirements, as after a change of the configuration.
    pub(super) fn stoppable(&self) -> Vec<usize> {
        let running = self.those(|slot| slot.runs().next().is_some());
        let needed: BTreeSet<usize> = running.iter().flat_map(|index| self.after(*index)).copied().collect();
        let (needed, free): (Vec<_>, Vec<_>) = running.into_iter().partition(|index| needed.contains(index));
        if free.is_empty() { needed } else { free }
    }
}

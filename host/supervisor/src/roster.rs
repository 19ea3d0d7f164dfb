//! The present state, use and failures of every extension.
//!
//! The supervisor writes here. All other code only reads, from any thread.

mod history;
mod unit;

use std::sync::Arc;

use parking_lot::RwLock;
use weir_config::{Config, ConfigFile, MainConfig};
use weir_reports::{FailureRecord, MessageId};

pub(crate) use self::unit::on_the_bus;
pub use self::{
    history::{HistoryEntry, HistoryEvent},
    unit::{Unit, Version, configure_traces, configure_traffic, lane_of},
};

/// Every extension since Main started, and the configuration.
#[derive(Debug)]
pub struct Roster(RwLock<Table>);

#[derive(Debug)]
struct Table {
    main: Arc<MainConfig>,
    /// Every extension, by peer number, with the [last](Roster::forget) of those that are no longer configured.
    units: Vec<Arc<Unit>>,
    /// The configured extensions, in the order of the configuration.
    listed: Vec<Arc<Unit>>,
    /// The configuration beside Main and its extensions.
    rest: Arc<Config>,
    file: Option<ConfigFile>,
    is_reloading: bool,
}

impl Roster {
    /// Makes a roster of these extensions. `rest` is the configuration beside Main and them.
    pub fn new(
        main: Arc<MainConfig>,
        mut units: Vec<Arc<Unit>>,
        rest: Config,
        file: Option<ConfigFile>,
    ) -> Self {
        // The vector reuses the larger allocation of the configurations that it was collected from.
        units.shrink_to_fit();
        Self(RwLock::new(Table {
            main,
            listed: units.clone(),
            units,
            rest: rest.into(),
            file,
            is_reloading: false,
        }))
    }

    /// Whether the configuration is being reloaded.
    pub fn is_reloading(&self) -> bool {
        self.0.read().is_reloading
    }

    /// Sets whether the configuration is being reloaded.
    pub fn set_reloading(&self, is_reloading: bool) {
        self.0.write().is_reloading = is_reloading;
    }

    /// Returns the configuration of Main.
    pub fn main(&self) -> Arc<MainConfig> {
        self.0.read().main.clone()
    }

    /// Returns the bytes of programs outside Main, queues and other sections that count against the memory budget.
    pub fn memory_beside_extensions(&self) -> u64 {
        self.rest().memory_beside_extensions()
    }

    /// Returns the configuration file that Main was started with, if any.
    pub fn file(&self) -> Option<ConfigFile> {
        self.0.read().file.clone()
    }

    /// Returns the configuration beside Main and its extensions.
    pub fn rest(&self) -> Arc<Config> {
        self.0.read().rest.clone()
    }

    /// Returns the configuration that Main keeps to. Of an extension that runs another version, it has the configured one.
    pub fn configuration(&self) -> Config {
        let table = self.0.read();
        let extensions = table.listed.iter().map(|unit| (*unit.configured()).clone());
        (*table.rest).clone().with_parts((*table.main).clone(), extensions)
    }

    /// Returns the configured extensions, in the order of the configuration.
    pub fn listed(&self) -> Vec<Arc<Unit>> {
        self.0.read().listed.clone()
    }

    /// Finds a configured extension by its id.
    pub fn find(&self, id: &str) -> Option<Arc<Unit>> {
        let table = self.0.read();
        table.listed.iter().find(|unit| unit.id().as_str() == id).cloned()
    }

    /// Returns a configured extension and its copies. The id of a copy gives just that copy.
    pub fn instances(&self, id: &str) -> Vec<Arc<Unit>> {
        let table = self.0.read();
        let is_one = |unit: &&Arc<Unit>| {
            let config = &unit.version().config;
            config.id.as_str() == id || config.copy_of.as_ref().is_some_and(|of| of.as_str() == id)
        };
        table.listed.iter().filter(is_one).cloned().collect()
    }

    /// Returns the failure that ended a request, if it is still on record.
    pub fn failure_of(&self, message: MessageId) -> Option<FailureRecord> {
        self.all().iter().rev().find_map(|unit| unit.failure_of(message))
    }

    /// Returns every extension that was not [forgotten](Self::forget), by peer number.
    pub fn all(&self) -> Vec<Arc<Unit>> {
        self.0.read().units.clone()
    }

    /// Replaces the configuration of Main, and that beside Main and its extensions.
    pub fn configure(&self, main: Arc<MainConfig>, rest: Config) {
        let mut table = self.0.write();
        table.main = main;
        table.rest = rest.into();
    }

    /// Replaces the list of configured extensions. `new` are those that were not configured before since Main started.
    pub fn list(&self, listed: Vec<Arc<Unit>>, new: Vec<Arc<Unit>>) {
        let mut table = self.0.write();
        table.listed = listed;
        table.units.extend(new);
    }

    /// Drops what is known of an extension that is no longer configured.
    pub fn forget(&self, unit: &Arc<Unit>) {
        self.0.write().units.retain(|known| !Arc::ptr_eq(known, unit));
    }
}

//! The present state, use and failures of every extension.
//!
//! The supervisor writes here; others only read, from any thread.

mod history;
mod unit;

use std::sync::Arc;

use parking_lot::RwLock;
use weir_config::{Config, ConfigFile, MainConfig};

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
    /// By peer number; includes those no longer configured.
    units: Vec<Arc<Unit>>,
    listed: Vec<Arc<Unit>>,
    rest: Arc<Config>,
    file: Option<ConfigFile>,
    is_reloading: bool,
}

impl Roster {
    /// A roster of these extensions; `rest` is the configuration beside them.
    pub fn new(
        main: Arc<MainConfig>,
        mut units: Vec<Arc<Unit>>,
        rest: Config,
        file: Option<ConfigFile>,
    ) -> Self {
        // Collecting reused an allocation of the configurations' size.
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

    /// The configuration of Main.
    pub fn main(&self) -> Arc<MainConfig> {
        self.0.read().main.clone()
    }

    /// Bytes of the queues and sections that count against the memory budget.
    pub fn memory_beside_extensions(&self) -> u64 {
        self.rest().memory_beside_extensions()
    }

    /// The file that Main was started with.
    pub fn file(&self) -> Option<ConfigFile> {
        self.0.read().file.clone()
    }

    /// The configuration beside Main and its extensions.
    pub fn rest(&self) -> Arc<Config> {
        self.0.read().rest.clone()
    }

    /// The configured extensions, in the order of the configuration.
    pub fn listed(&self) -> Vec<Arc<Unit>> {
        self.0.read().listed.clone()
    }

    /// A configured extension.
    pub fn find(&self, id: &str) -> Option<Arc<Unit>> {
        let table = self.0.read();
        table.listed.iter().find(|unit| unit.id().as_str() == id).cloned()
    }

    /// An extension and its copies. Each copy also has an id of its own.
    pub fn instances(&self, id: &str) -> Vec<Arc<Unit>> {
        let table = self.0.read();
        let is_one = |unit: &&Arc<Unit>| {
            let config = &unit.version().config;
            config.id.as_str() == id || config.copy_of.as_ref().is_some_and(|of| of.as_str() == id)
        };
        table.listed.iter().filter(is_one).cloned().collect()
    }

    /// Every extension since Main started, by peer number, from 1.
    pub fn all(&self) -> Vec<Arc<Unit>> {
        self.0.read().units.clone()
    }

    /// Replaces the configuration; `new` are the extensions that never were.
    pub fn configure(
        &self,
        main: Arc<MainConfig>,
        listed: Vec<Arc<Unit>>,
        new: Vec<Arc<Unit>>,
        rest: Config,
    ) {
        let mut table = self.0.write();
        table.main = main;
        table.rest = rest.into();
        table.listed = listed;
        table.units.extend(new);
    }
}

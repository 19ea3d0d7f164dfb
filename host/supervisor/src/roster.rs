//! The present state, use and failures of every extension.
//!
//! The supervisor writes here; others only read, from any thread.

mod failure;
mod history;
mod unit;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use serde::Serialize;
use weir_config::{Config, ConfigFile, MainConfig};
use weir_guest::BeingCompiled;
use weir_logs::rfc3339;
use weir_names::ExtensionId;

pub use self::{
    failure::{FailureRecord, HandledMessage},
    history::{HistoryEntry, HistoryEvent},
    unit::{Unit, Version, configure_traces, configure_traffic, lane_of, on_the_bus, queues_on_the_bus},
};

/// The state of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ExtensionState {
    /// Configured, and not started: it waits for a start or for what it requires.
    Loaded,
    /// Its program is loading, compiling or running, and not ready yet.
    Starting,
    /// It serves.
    Ready,
    /// It runs, and says that it cannot serve for now.
    Interrupted,
    /// It was told to stop, and finishes what it has in hand.
    Draining,
    /// It ended as it should.
    Stopped,
    /// It ended as it should not, or what it requires does not run. It starts by itself only when that requirement
    /// runs.
    Failed,
    /// It failed, and restarts after a delay.
    BackingOff,
    /// It failed too often, and waits for a restart by the operator.
    Quarantined,
}

impl fmt::Display for ExtensionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loaded => "loaded",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Interrupted => "interrupted",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::BackingOff => "backing-off",
            Self::Quarantined => "quarantined",
        })
    }
}

/// One extension at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ExtensionStatus {
    /// Its id.
    pub id: ExtensionId,
    /// Its state.
    pub state: ExtensionState,
    /// Why, if there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it entered this state.
    #[serde(serialize_with = "rfc3339")]
    pub since: SystemTime,
    /// What is compiled while it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiling: Option<BeingCompiled>,
    /// SHA-256, in hexadecimal, of the component that it runs or restarts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Starts after the first.
    pub restarts: u64,
    /// Wall-clock time on the worker thread, over all its instances.
    #[serde(rename = "cpu-seconds", serialize_with = "seconds")]
    pub cpu: Duration,
    /// Its part of the last second on the worker thread, from 0 to 1.
    pub cpu_share: f64,
    /// Bytes of its linear memory.
    pub memory: u64,
    /// Bytes that its linear memory may have.
    pub memory_limit: u64,
    /// Waiting messages.
    pub inbox_messages: u64,
    /// Bytes of the waiting messages.
    pub inbox_bytes: u64,
    /// Messages received.
    pub received: u64,
    /// Requests and events sent.
    pub sent: u64,
    /// Messages to it that found no room.
    pub shed: u64,
    /// Its answers after the deadline.
    pub late: u64,
    /// Requests to it that did not fit its description. None: they are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Its limits class.
    pub class: String,
    /// Contracts it owns.
    pub fulfills: Vec<weir_names::ContractName>,
    /// Its last failures, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRecord>,
    /// Failures so far, by the limit that caused them; under an empty name, those of any other cause.
    #[serde(skip)]
    pub failed: BTreeMap<&'static str, u64>,
}

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
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_reloading
    }

    /// Sets whether the configuration is being reloaded.
    pub fn set_reloading(&self, is_reloading: bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).is_reloading = is_reloading;
    }

    /// The configuration of Main.
    pub fn main(&self) -> Arc<MainConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).main.clone()
    }

    /// Bytes of the queues and sections that count against the memory budget.
    pub fn memory_beside_extensions(&self) -> u64 {
        self.rest().memory_beside_extensions()
    }

    /// The file that Main was started with.
    pub fn file(&self) -> Option<ConfigFile> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).file.clone()
    }

    /// The configuration beside Main and its extensions.
    pub fn rest(&self) -> Arc<Config> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).rest.clone()
    }

    /// The configured extensions, in the order of the configuration.
    pub fn listed(&self) -> Vec<Arc<Unit>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).listed.clone()
    }

    /// A configured extension.
    pub fn find(&self, id: &str) -> Option<Arc<Unit>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.listed.iter().find(|unit| unit.id().as_str() == id).cloned()
    }

    /// An extension and its copies. Each copy also has an id of its own.
    pub fn instances(&self, id: &str) -> Vec<Arc<Unit>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_one = |unit: &&Arc<Unit>| {
            let config = &unit.version().config;
            config.id.as_str() == id || config.copy_of.as_ref().is_some_and(|of| of.as_str() == id)
        };
        table.listed.iter().filter(is_one).cloned().collect()
    }

    /// Every extension since Main started, by peer number, from 1.
    pub fn all(&self) -> Vec<Arc<Unit>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).units.clone()
    }

    /// Replaces the configuration; `new` are the extensions that never were.
    pub fn configure(
        &self,
        main: Arc<MainConfig>,
        listed: Vec<Arc<Unit>>,
        new: Vec<Arc<Unit>>,
        rest: Config,
    ) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.main = main;
        table.rest = rest.into();
        table.listed = listed;
        table.units.extend(new);
    }
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

//! What is known of every extension at any moment, for whoever asks: states, use, failures.
//!
//! The supervisor writes here; everybody else reads, from any thread.

mod failure;
mod history;
mod unit;

use std::{
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
    unit::{Unit, Version, configure_traffic, on_the_bus, queues_on_the_bus},
};

/// Where an extension is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ExtensionState {
    /// Configured, and not started yet: it waits to be, or for what it requires.
    Loaded,
    /// Its program is loaded, compiled or at work before it is ready.
    Starting,
    /// It serves.
    Ready,
    /// It runs, and says that it cannot serve for now.
    Interrupted,
    /// It was asked to stop and finishes what it has in hand.
    Draining,
    /// It has ended as it should.
    Stopped,
    /// It has ended as it should not, or what it requires does not run. It is not restarted by itself,
    /// but for the latter, when that runs.
    Failed,
    /// It has failed, and is started again after a delay.
    BackingOff,
    /// It has failed too often, and is not started before
    /// a restart by the operator.
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
    /// Where it is in its life.
    pub state: ExtensionState,
    /// Why, where there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it came into this state.
    #[serde(serialize_with = "rfc3339")]
    pub since: SystemTime,
    /// What of it is being compiled, while it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiling: Option<BeingCompiled>,
    /// SHA-256 of the component that it runs, or that it is started again with, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// How often it was started after the first time.
    pub restarts: u64,
    /// Time for which it ran on the worker thread, by the clock, over all its instances.
    #[serde(rename = "cpu-seconds", serialize_with = "seconds")]
    pub cpu: Duration,
    /// Which part of the last second it ran, from 0 to 1.
    pub cpu_share: f64,
    /// Bytes of linear memory that it has.
    pub memory: u64,
    /// Bytes of linear memory that it may have.
    pub memory_limit: u64,
    /// Messages that wait for it.
    pub inbox_messages: u64,
    /// Bytes of the messages that wait for it.
    pub inbox_bytes: u64,
    /// Messages that it received.
    pub received: u64,
    /// Requests and events that it sent.
    pub sent: u64,
    /// Messages for it that found no room.
    pub shed: u64,
    /// Answers of its that came after the deadline.
    pub late: u64,
    /// The limits class that its limits come from.
    pub class: String,
    /// Contracts that it owns.
    pub fulfills: Vec<weir_names::ContractName>,
    /// Its last failures, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRecord>,
}

/// Every extension that there is or was, and what is configured of Main.
#[derive(Debug)]
pub struct Roster(RwLock<Table>);

#[derive(Debug)]
struct Table {
    main: Arc<MainConfig>,
    /// By the number of their peer; those that are no longer configured stay.
    units: Vec<Arc<Unit>>,
    /// Those that are configured, in the order of the configuration.
    listed: Vec<Arc<Unit>>,
    /// What is configured beside Main and its extensions.
    rest: Arc<Config>,
    /// The file that Main was started with.
    file: Option<ConfigFile>,
    /// Another configuration is being applied.
    is_reloading: bool,
}

impl Roster {
    /// A roster of these extensions; `rest` is what is configured beside them, and `file` what all that was read from.
    pub fn new(
        main: Arc<MainConfig>,
        mut units: Vec<Arc<Unit>>,
        rest: Config,
        file: Option<ConfigFile>,
    ) -> Self {
        // Gathered from configurations, it has the memory of as many of those.
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

    /// Whether another configuration is being applied.
    pub fn is_reloading(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_reloading
    }

    /// Says whether another configuration is being applied.
    pub fn set_reloading(&self, is_reloading: bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).is_reloading = is_reloading;
    }

    /// What is configured of Main itself.
    pub fn main(&self) -> Arc<MainConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).main.clone()
    }

    /// Bytes of the queues and sections that are configured, as they count against the memory budget.
    pub fn memory_beside_extensions(&self) -> u64 {
        self.rest().memory_beside_extensions()
    }

    /// The file that Main was started with.
    pub fn file(&self) -> Option<ConfigFile> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).file.clone()
    }

    /// What is configured beside Main and its extensions.
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

    /// A configured extension and those that serve its inbox beside it, which can also be named alone.
    pub fn instances(&self, id: &str) -> Vec<Arc<Unit>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_one = |unit: &&Arc<Unit>| {
            let config = &unit.version().config;
            config.id.as_str() == id || config.copy_of.as_ref().is_some_and(|of| of.as_str() == id)
        };
        table.listed.iter().filter(is_one).cloned().collect()
    }

    /// All that there ever were, by the number of their peer, from 1.
    pub fn all(&self) -> Vec<Arc<Unit>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).units.clone()
    }

    /// Another configuration: these are the extensions from now on, some of them new.
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

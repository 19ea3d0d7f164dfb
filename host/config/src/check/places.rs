//! Where the parts of a configuration stand that are judged together.

use std::collections::BTreeMap;

use weir_names::{HookDirName, QueueName};

use crate::error::Place;

/// Where the parts stand that are judged together; empty for a configuration made in Rust.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) plugin_dir: Option<Place>,
    pub(crate) cache_dir: Option<Place>,
    pub(crate) memory_budget: Option<Place>,
    pub(crate) serves: Vec<Place>,
    pub(crate) trusted_keys: Vec<Place>,
    pub(crate) queues: BTreeMap<QueueName, QueuePlaces>,
    pub(crate) hooks: BTreeMap<HookDirName, HookDirPlaces>,
    pub(crate) extensions: Vec<ExtensionPlaces>,
}

/// The same of one queue.
#[derive(Debug)]
pub(crate) struct QueuePlaces {
    pub(crate) name: Place,
    pub(crate) dead_letter: Option<Place>,
}

/// The same of one directory of hooks.
#[derive(Debug)]
pub(crate) struct HookDirPlaces {
    pub(crate) name: Place,
    pub(crate) dir: Place,
    pub(crate) suffixes: Vec<Place>,
    pub(crate) grants: GrantPlaces,
}

/// The same of one extension, item by item.
#[derive(Debug)]
pub(crate) struct ExtensionPlaces {
    pub(crate) id: Place,
    pub(crate) path: Place,
    pub(crate) fulfills: Vec<Place>,
    pub(crate) requires: Vec<Place>,
    pub(crate) wants: Vec<Place>,
    pub(crate) subscribes: Vec<SubscribePlaces>,
    pub(crate) puts: Vec<Place>,
    pub(crate) takes: Vec<Place>,
    pub(crate) runs: Vec<Place>,
    pub(crate) grants: GrantPlaces,
}

/// The same of the directories that are granted: of this machine, and as the guest sees them.
#[derive(Debug, Default)]
pub(crate) struct GrantPlaces {
    pub(crate) hosts: Vec<Place>,
    pub(crate) guests: Vec<Place>,
}

/// The same of one grant to subscribe: what the inbox must have room for.
#[derive(Debug, Default)]
pub(crate) struct SubscribePlaces {
    pub(crate) messages: Option<Place>,
    pub(crate) bytes: Option<Place>,
}

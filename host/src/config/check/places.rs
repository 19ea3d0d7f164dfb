//! Where the parts of a configuration stand that are judged together.

use std::collections::BTreeMap;

use crate::{
    config::error::Place,
    names::{HookDirName, QueueName},
};

/// Where the parts stand that are judged together; empty for a configuration made in Rust.
#[derive(Debug, Default)]
pub(in crate::config) struct Places {
    pub(in crate::config) plugin_dir: Option<Place>,
    pub(in crate::config) cache_dir: Option<Place>,
    pub(in crate::config) memory_budget: Option<Place>,
    pub(in crate::config) serves: Vec<Place>,
    pub(in crate::config) trusted_keys: Vec<Place>,
    pub(in crate::config) queues: BTreeMap<QueueName, QueuePlaces>,
    pub(in crate::config) hooks: BTreeMap<HookDirName, HookDirPlaces>,
    pub(in crate::config) extensions: Vec<ExtensionPlaces>,
}

/// The same of one queue.
#[derive(Debug)]
pub(in crate::config) struct QueuePlaces {
    pub(in crate::config) name: Place,
    pub(in crate::config) dead_letter: Option<Place>,
}

/// The same of one directory of hooks.
#[derive(Debug)]
pub(in crate::config) struct HookDirPlaces {
    pub(in crate::config) name: Place,
    pub(in crate::config) dir: Place,
    pub(in crate::config) suffixes: Vec<Place>,
    pub(in crate::config) grants: GrantPlaces,
}

/// The same of one extension, item by item.
#[derive(Debug)]
pub(in crate::config) struct ExtensionPlaces {
    pub(in crate::config) id: Place,
    pub(in crate::config) path: Place,
    pub(in crate::config) fulfills: Vec<Place>,
    pub(in crate::config) requires: Vec<Place>,
    pub(in crate::config) wants: Vec<Place>,
    pub(in crate::config) subscribes: Vec<SubscribePlaces>,
    pub(in crate::config) puts: Vec<Place>,
    pub(in crate::config) takes: Vec<Place>,
    pub(in crate::config) runs: Vec<Place>,
    pub(in crate::config) grants: GrantPlaces,
}

/// The same of the directories that are granted: of this machine, and as the guest sees them.
#[derive(Debug, Default)]
pub(in crate::config) struct GrantPlaces {
    pub(in crate::config) hosts: Vec<Place>,
    pub(in crate::config) guests: Vec<Place>,
}

/// The same of one grant to subscribe: what the inbox must have room for.
#[derive(Debug, Default)]
pub(in crate::config) struct SubscribePlaces {
    pub(in crate::config) messages: Option<Place>,
    pub(in crate::config) bytes: Option<Place>,
}

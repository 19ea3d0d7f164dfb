//! Places of the parts that checks compare.

use std::{collections::BTreeMap, sync::Arc};

use weir_names::QueueName;

use crate::{
    error::Location,
    schema::{SectionLocations, Sections},
};

/// Places of the parts that checks compare. Empty for a configuration made in Rust.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    pub(crate) control_socket: Option<Location>,
    pub(crate) peer_socket: Option<Location>,
    pub(crate) plugin_dir: Option<Location>,
    pub(crate) cache_dir: Option<Location>,
    pub(crate) data_dir: Option<Location>,
    pub(crate) memory_budget: Option<Location>,
    pub(crate) serves: Vec<Location>,
    pub(crate) trusted_keys: Vec<Location>,
    pub(crate) queues: BTreeMap<QueueName, QueueLocations>,
    pub(crate) sections: SectionLocations,
    pub(crate) extensions: Vec<ExtensionLocations>,
    pub(crate) peers: Vec<PeerLocations>,
}

/// The places from reading a file. All are equal, so that configurations compare by content.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadFrom(Option<Arc<Locations>>);

impl ReadFrom {
    pub(crate) fn new(locations: Locations) -> Self {
        Self(Some(Arc::new(locations)))
    }

    /// The places, or empty ones for a configuration made in Rust with these sections.
    pub(crate) fn locations(&self, sections: &Sections) -> Arc<Locations> {
        let nowhere =
            || Locations { sections: SectionLocations::nowhere(sections), ..Locations::default() }.into();
        self.0.clone().unwrap_or_else(nowhere)
    }
}

impl PartialEq for ReadFrom {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(crate) struct QueueLocations {
    pub(crate) name: Location,
    pub(crate) dead_letter: Option<Location>,
    pub(crate) store: Option<Location>,
}

#[derive(Debug)]
pub(crate) struct ExtensionLocations {
    pub(crate) id: Location,
    pub(crate) path: Location,
    pub(crate) sha256: Option<Location>,
    pub(crate) requires: Vec<Location>,
    pub(crate) wants: Vec<Location>,
    pub(crate) channels: ChannelLocations,
    pub(crate) runs: Vec<Location>,
    pub(crate) grants: GrantLocations,
}

#[derive(Debug)]
pub(crate) struct PeerLocations {
    pub(crate) name: Location,
    pub(crate) tokens: Vec<Location>,
    pub(crate) wants: Vec<Location>,
    pub(crate) channels: ChannelLocations,
}

/// Places of what extensions and peers both have.
#[derive(Debug)]
pub(crate) struct ChannelLocations {
    pub(crate) fulfills: Vec<Location>,
    pub(crate) subscribes: Vec<SubscribeLocations>,
    pub(crate) puts: Vec<Location>,
    pub(crate) takes: Vec<Location>,
}

/// Places of granted directories, on the host and in the guest, and of stores.
#[derive(Clone, Debug, Default)]
pub struct GrantLocations {
    pub(crate) hosts: Vec<Location>,
    pub(crate) guests: Vec<Location>,
    pub(crate) stores: Vec<Location>,
}

impl GrantLocations {
    /// The place of a store.
    #[must_use]
    pub fn store(&self, item: usize) -> Option<Location> {
        self.stores.get(item).cloned()
    }
}

#[derive(Debug, Default)]
pub(crate) struct SubscribeLocations {
    pub(crate) messages: Option<Location>,
    pub(crate) bytes: Option<Location>,
}

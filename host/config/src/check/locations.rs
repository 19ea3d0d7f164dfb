//! Places of the parts that checks compare.

use std::{collections::BTreeMap, sync::Arc};

use weir_names::QueueName;

use crate::{
    key::Places,
    schema::{SectionLocations, Sections},
};

/// Places of the parts that checks compare. Empty for a configuration made in Rust.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    pub(crate) main: Places,
    pub(crate) queues: BTreeMap<QueueName, Places>,
    pub(crate) sections: SectionLocations,
    pub(crate) extensions: Vec<Places>,
    pub(crate) peers: Vec<Places>,
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

//! The values that an extension reads through `wasi:config/store`: those of its configuration, and its secrets.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use weir_config::ExtensionConfig;
use weir_names::chain;

use super::{Exit, Openings};

/// Values by name.
pub type Values = BTreeMap<String, String>;

/// The values that an extension reads through `wasi:config/store`. They may change while it runs.
#[derive(Default)]
pub struct Settings(Mutex<Option<Arc<Values>>>);

impl Settings {
    /// Returns the values as they are now.
    pub(super) fn values(&self) -> Arc<Values> {
        self.0.lock().clone().unwrap_or_default()
    }

    /// Sets all values.
    pub fn set(&self, values: Arc<Values>) {
        *self.0.lock() = Some(values);
    }

    /// Returns the names of the values that these would add, change or remove. Returns `None` if no values are set yet.
    pub fn changes(&self, values: &Values) -> Option<Vec<String>> {
        let now = self.0.lock().clone()?;
        let names: BTreeSet<_> = now.keys().chain(values.keys()).collect();
        Some(names.into_iter().filter(|name| now.get(*name) != values.get(*name)).cloned().collect())
    }
}

/// Shows only the names, because the values may be secret.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values().keys()).finish()
    }
}

impl Openings {
    /// Reads all values of an extension, its secrets from their files.
    ///
    /// # Errors
    ///
    /// Returns how an instance ends if its secrets cannot be read. It may start later, because the files may come.
    pub async fn values(&self, config: &Arc<ExtensionConfig>) -> Result<Arc<Values>, Exit> {
        if config.secrets.is_empty() {
            return Ok(Arc::new(config.config.clone()));
        }
        let paths = config.secrets.values().filter_map(|source| source.path().ok()).collect();
        let wanted = config.clone();
        let hindered = |reason: String| Exit::Hindered { reason, limit: None };
        match self.open(paths, move || wanted.read_values()).await {
            Ok(read) => read.map(Arc::new).map_err(|error| hindered(chain(&error))),
            Err(panicked) => Err(hindered(chain(&panicked))),
        }
    }
}

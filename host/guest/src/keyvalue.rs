//! `wasi:keyvalue`: the stores that a guest is granted.
//!
//! Without the cargo feature `store` nothing is offered, and the types here are empty.

#[cfg(feature = "store")]
mod offered;
#[cfg(feature = "store")]
mod types;

#[cfg(feature = "store")]
use std::sync::Arc;

use weir_config::{Limits, StoreGrant};
#[cfg(feature = "store")]
use weir_names::harmless;

#[cfg(feature = "store")]
pub(crate) use self::offered::add_to_linker;
use crate::exit::Exit;

/// The stores of Main, if this build has the feature `store`. Clones share the stores.
#[derive(Clone, Debug, Default)]
pub struct KeyValue {
    #[cfg(feature = "store")]
    stores: Option<Arc<weir_store::Stores>>,
}

#[cfg(feature = "store")]
impl From<Arc<weir_store::Stores>> for KeyValue {
    fn from(stores: Arc<weir_store::Stores>) -> Self {
        Self { stores: Some(stores) }
    }
}

/// The stores that one guest may open, and its limit for answers.
#[cfg(feature = "store")]
#[derive(Debug)]
pub(crate) struct StoreAccess {
    stores: Arc<weir_store::Stores>,
    owner: String,
    grants: Vec<StoreGrant>,
    /// The most bytes of one answer.
    transfer: u64,
}

#[cfg(not(feature = "store"))]
#[derive(Debug)]
pub(crate) struct StoreAccess;

impl KeyValue {
    /// Returns the access of a guest with these grants, or `None` if it has no grants or Main has no stores.
    #[cfg(feature = "store")]
    pub(crate) fn access(
        &self,
        owner: &str,
        grants: &[StoreGrant],
        limits: &Limits,
    ) -> Option<Box<StoreAccess>> {
        let stores = self.stores.clone().filter(|_| !grants.is_empty())?;
        let (owner, grants, transfer) = (owner.to_owned(), grants.to_owned(), limits.transfer());
        Some(Box::new(StoreAccess { stores, owner, grants, transfer }))
    }

    /// Opens the stores of these grants, and skips those that Main does not have. A guest does not start if one of the
    /// others cannot be opened.
    ///
    /// # Errors
    ///
    /// Returns how an instance ends if a store cannot be opened. It may start later, once the store can be opened.
    #[cfg(feature = "store")]
    pub(crate) async fn open(&self, grants: &[StoreGrant]) -> Result<(), Exit> {
        let Some(stores) = &self.stores else { return Ok(()) };
        for name in grants.iter().map(|grant| &grant.name) {
            let Some(store) = stores.get(name.as_str()) else { continue };
            store.open().await.map_err(|error| {
                let reason = harmless(format_args!("store `{name}`: {error}"), 1024);
                Exit::Hindered { reason, limit: None }
            })?;
        }
        Ok(())
    }

    #[cfg(not(feature = "store"))]
    #[expect(clippy::unused_async, reason = "a build with the feature waits")]
    pub(crate) async fn open(&self, _grants: &[StoreGrant]) -> Result<(), Exit> {
        Ok(())
    }

    #[cfg(not(feature = "store"))]
    #[expect(clippy::unused_self, reason = "a build with the feature uses it")]
    pub(crate) fn access(
        &self,
        _owner: &str,
        _grants: &[StoreGrant],
        _limits: &Limits,
    ) -> Option<Box<StoreAccess>> {
        None
    }
}

/// The versions that are offered: `draft`, which wasmtime 48 and hosts before it have, and `draft2`, the last draft.
pub(crate) const VERSIONS: [&str; 2] = ["0.2.0-draft", "0.2.0-draft2"];

/// Whether an interface of `wasi:keyvalue` is offered in this version.
pub(crate) fn is_offered(interface: &str, version: &str) -> bool {
    cfg!(feature = "store") && is_known(interface) && VERSIONS.contains(&version)
}

/// Whether an interface of `wasi:keyvalue` is offered by a build with the feature.
pub(crate) fn is_known(interface: &str) -> bool {
    matches!(interface, "wasi:keyvalue/store" | "wasi:keyvalue/atomics" | "wasi:keyvalue/batch")
}

#[cfg(not(feature = "store"))]
#[expect(clippy::unnecessary_wraps, reason = "a build with the feature can fail")]
pub(crate) fn add_to_linker<G: crate::sandbox::Guest>(
    _linker: &mut wasmtime::component::Linker<G>,
) -> wasmtime::Result<()> {
    Ok(())
}

//! The key-value stores of Main: opened, offered to guests and as `store@1`, and closed.
//!
//! Without the cargo feature `store` all of this is empty.

#[cfg(feature = "store")]
mod events;
#[cfg(feature = "store")]
mod service;

#[cfg(feature = "store")]
pub(crate) use self::with::Stores;
#[cfg(not(feature = "store"))]
pub(crate) use self::without::Stores;

#[cfg(feature = "store")]
mod with {
    use std::{
        io::{Read, Write},
        path::{Path, PathBuf},
        sync::{Arc, LazyLock},
    };

    use tokio::{runtime::Handle, task::JoinHandle};
    use weir_bus::Bus;
    use weir_config::{Config, STORE_CONTRACT};
    use weir_guest::KeyValue;
    use weir_names::chain;
    use weir_openrpc::{Descriptions, Document};
    use weir_store::StoresConfig;
    use weir_supervisor::{Reconfigure, Roster};
    use weir_versions::{DataOwner, OwnData};

    use super::{events, service};
    use crate::{contracts::Provider, service::Service};

    /// What extensions have in stores that are not shared.
    #[derive(Debug)]
    struct OwnEntries(Stores);

    impl OwnData for OwnEntries {
        fn dir(&self) -> Option<&Path> {
            self.0.dir.as_deref()
        }

        fn copy_to(&self, DataOwner { id, stores }: &DataOwner, to: &mut dyn Write) -> Result<(), String> {
            self.0.all.copy_own(id.as_str(), stores, to).map_err(|error| chain(&error))
        }

        fn put_back(&self, owner: &DataOwner, from: &mut dyn Read) -> Result<(), String> {
            self.0.all.put_back_own(owner.id.as_str(), from).map_err(|error| chain(&error))
        }
    }

    /// The stores of Main. Clones share them.
    #[derive(Clone, Debug)]
    pub(crate) struct Stores {
        pub(crate) all: Arc<weir_store::Stores>,
        dir: Option<PathBuf>,
    }

    impl Stores {
        pub(crate) fn new(config: &Config, dir: Option<PathBuf>, worker: Handle, bus: &Arc<Bus>) -> Self {
            let on_change = events::publisher(bus, worker.clone());
            let stores = Self { all: weir_store::Stores::new(worker, on_change).into(), dir };
            stores.configure(config);
            stores
        }

        pub(crate) fn key_value(&self) -> KeyValue {
            self.all.clone().into()
        }

        /// What extensions have in stores that are not shared.
        pub(crate) fn own_data(&self) -> Option<Box<dyn OwnData>> {
            Some(Box::new(OwnEntries(self.clone())))
        }

        /// Adds the contract `store@1`, unless the program serves its own.
        pub(crate) fn serve(&self, roster: &Arc<Roster>, services: &mut Vec<Service>) {
            if !services.iter().any(|service| service.contract().as_str() == STORE_CONTRACT) {
                services.extend(service::service(&self.all, roster));
            }
        }

        /// The description of `store@1`. `None` without stores, because nobody could use the contract then.
        pub(crate) fn described(&self) -> Option<Provider> {
            static DESCRIBED: LazyLock<Arc<Descriptions>> = LazyLock::new(|| {
                let document = Document::parse(service::DOCUMENT).map(|document| document.line());
                Descriptions::new(document.unwrap_or_default()).into()
            });
            (!self.all.all().is_empty()).then(|| Provider {
                name: weir_names::MAIN.to_owned(),
                serves: STORE_CONTRACT.parse().into_iter().collect(),
                descriptions: DESCRIBED.clone(),
            })
        }

        pub(crate) fn on_reload(&self) -> Option<Reconfigure> {
            let stores = self.clone();
            Some(Reconfigure(Box::new(move |config| stores.configure(config))))
        }

        /// Opens the files when Main starts, so that what is wrong with them is in the log.
        pub(crate) fn open(&self) -> JoinHandle<()> {
            let stores = self.all.clone();
            tokio::spawn(async move { stores.open_all().await })
        }

        pub(crate) async fn close(&self) {
            self.all.close().await;
        }

        fn configure(&self, config: &Config) {
            let stores = config.section::<StoresConfig>().cloned().unwrap_or_default();
            self.all.configure(self.dir.as_ref(), &stores);
        }
    }
}

#[cfg(not(feature = "store"))]
mod without {
    use std::{path::PathBuf, sync::Arc};

    use tokio::{runtime::Handle, task::JoinHandle};
    use weir_bus::Bus;
    use weir_config::Config;
    use weir_guest::KeyValue;
    use weir_supervisor::{Reconfigure, Roster};
    use weir_versions::OwnData;

    use crate::{contracts::Provider, service::Service};

    /// No stores.
    #[derive(Clone, Debug)]
    pub(crate) struct Stores;

    #[expect(clippy::unused_self, reason = "with the feature, these functions use `self`")]
    impl Stores {
        pub(crate) fn new(_config: &Config, _dir: Option<PathBuf>, _worker: Handle, _bus: &Arc<Bus>) -> Self {
            Self
        }

        pub(crate) fn key_value(&self) -> KeyValue {
            KeyValue::default()
        }

        pub(crate) fn own_data(&self) -> Option<Box<dyn OwnData>> {
            None
        }

        pub(crate) fn serve(&self, _roster: &Arc<Roster>, _services: &mut Vec<Service>) {}

        pub(crate) fn described(&self) -> Option<Provider> {
            None
        }

        pub(crate) fn on_reload(&self) -> Option<Reconfigure> {
            None
        }

        pub(crate) fn open(&self) -> JoinHandle<()> {
            tokio::spawn(std::future::ready(()))
        }

        #[expect(clippy::unused_async, reason = "with the feature, this function waits")]
        pub(crate) async fn close(&self) {}
    }
}

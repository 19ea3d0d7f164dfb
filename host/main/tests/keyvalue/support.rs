//! Extensions and hooks with stores.

use std::{path::Path, time::Duration};

use weir_host::{
    Config, ExtensionConfig, Main, MainConfig,
    config::{DirMode, RestartPolicy, StoreGrant},
    control::ExtensionState,
    hooks::{HookCall, HookDirConfig, HookReport},
    logs::Source,
    store::{StoreConfig, StoresConfig},
};

/// Enough on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A Main with these stores in `dir`.
pub(crate) fn config(dir: &Path, extensions: Vec<ExtensionConfig>, stores: &[(&str, StoreConfig)]) -> Config {
    let mut main = MainConfig::default();
    main.cache_dir = Some(concat!(env!("CARGO_TARGET_TMPDIR"), "/cache").into());
    main.data_dir = Some(dir.join("data"));
    main.request_timeout = PATIENCE;
    let mut config = Config::new(main, extensions);
    let stores = stores.iter().map(|(name, store)| (name.parse().unwrap(), store.clone()));
    config.set_section(stores.collect::<StoresConfig>());
    config
}

pub(crate) async fn start(
    dir: &Path,
    extensions: Vec<ExtensionConfig>,
    stores: &[(&str, StoreConfig)],
) -> Main {
    Main::builder(config(dir, extensions, stores)).start().await.unwrap()
}

pub(crate) fn store() -> StoreConfig {
    StoreConfig::default()
}

pub(crate) fn shared() -> StoreConfig {
    let mut store = store();
    store.shared = true;
    store
}

pub(crate) fn grants(names: &[&str]) -> Vec<StoreGrant> {
    names.iter().map(|name| StoreGrant { name: name.parse().unwrap(), mode: DirMode::Rw }).collect()
}

/// A guest that runs once, with these tasks, within ordinary limits.
pub(crate) fn once(id: &str, guest: &str, tasks: &str, stores: &[&str]) -> ExtensionConfig {
    let mut extension = ExtensionConfig::new(id.parse().unwrap(), test_guests::path(guest));
    extension.restart.policy = RestartPolicy::Never;
    extension.grants.env.insert("DO".to_owned(), tasks.to_owned());
    extension.grants.stores = grants(stores);
    extension
}

pub(crate) fn puppet(id: &str, stores: &[&str]) -> ExtensionConfig {
    let mut puppet = ExtensionConfig::new(id.parse().unwrap(), test_guests::path("puppet"));
    puppet.fulfills = vec![format!("{id}@1").parse().unwrap()];
    puppet.config.insert("contract".to_owned(), format!("{id}@1"));
    puppet.grants.stores = grants(stores);
    puppet.limits.ready_timeout = PATIENCE;
    puppet
}

/// What an extension that runs once has printed, when it has ended.
pub(crate) async fn printed(main: &Main, id: &str) -> Vec<String> {
    let mut events = main.control().events();
    loop {
        let status = main.control().status(id).unwrap();
        match status.state {
            ExtensionState::Stopped | ExtensionState::Failed => {
                assert_eq!(status.failures, [], "{:?}", status.reason);
                let lines = main.control().logs();
                let own =
                    lines.into_iter().filter(|line| &*line.extension == id && line.source != Source::Main);
                return own.map(|line| line.message.clone()).collect();
            }
            _ => drop(tokio::time::timeout(PATIENCE, events.next()).await.unwrap()),
        }
    }
}

/// A run of one hook with these tasks.
pub(crate) async fn hook(main: &Main, name: &str, tasks: &str) -> HookReport {
    let dir = main.hooks().get(name).unwrap();
    tokio::time::timeout(PATIENCE, dir.run(HookCall::new().param("DO", tasks))).await.unwrap().unwrap()
}

/// A directory with this guest as its hook.
pub(crate) fn hook_dir(dir: &Path, guest: &str, stores: &[&str]) -> HookDirConfig {
    std::fs::create_dir_all(dir).unwrap();
    std::fs::copy(test_guests::path(guest), dir.join("10-it.wasm")).unwrap();
    let mut config = HookDirConfig::new(dir);
    config.grants.stores = grants(stores);
    config.timeout = PATIENCE;
    config
}

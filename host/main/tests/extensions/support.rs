//! Extensions from guests, and waiting for events.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use weir_host::{
    Builder, Config, Error, ExtensionConfig, Main, MainConfig, Service, config::RestartPolicy,
    control::ExtensionState, events::MainEvent,
};

/// Enough on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// An extension with this guest, enough time, no restarts and no grants.
pub(crate) fn extension(id: &str, guest: &str) -> ExtensionConfig {
    let mut extension = ExtensionConfig::new(id.parse().unwrap(), test_guests::path(guest));
    extension.limits.ready_timeout = PATIENCE;
    extension.limits.stop_timeout = PATIENCE;
    extension.restart.policy = RestartPolicy::Never;
    extension
}

pub(crate) fn puppet(id: &str) -> ExtensionConfig {
    let mut puppet = extension(id, "puppet");
    puppet.fulfills = vec![format!("{id}@1").parse().unwrap()];
    puppet.config.insert("contract".to_owned(), format!("{id}@1"));
    puppet
}

pub(crate) fn puppet_with(id: &str, change: impl FnOnce(&mut ExtensionConfig)) -> ExtensionConfig {
    let mut puppet = puppet(id);
    change(&mut puppet);
    puppet
}

pub(crate) fn set(extension: &mut ExtensionConfig, key: &str, value: &str) {
    extension.config.insert(key.to_owned(), value.to_owned());
}

/// With a cache for all tests, so that each component is compiled once.
pub(crate) fn config(extensions: Vec<ExtensionConfig>) -> Config {
    let mut main = MainConfig::default();
    main.cache_dir = Some(concat!(env!("CARGO_TARGET_TMPDIR"), "/cache").into());
    main.request_timeout = PATIENCE;
    Config::new(main, extensions)
}

pub(crate) fn builder(extensions: Vec<ExtensionConfig>) -> Builder {
    Main::builder(config(extensions))
}

pub(crate) async fn start(extensions: Vec<ExtensionConfig>) -> Main {
    builder(extensions).start().await.unwrap()
}

/// Gives a puppet a command; returns the outcome in words.
pub(crate) async fn tell(main: &Main, id: &str, command: &str) -> Result<String, String> {
    match main.client().call(&format!("{id}@1"), "run", command.to_owned()).await {
        Ok(answer) => Ok(String::from_utf8(answer.to_vec()).unwrap()),
        Err(Error::Handler(error)) if error.code == "refused" => Err(error.message),
        Err(other) => Err(format!("{other:?}")),
    }
}

/// Waits for a state, however short; returns its reason.
pub(crate) async fn reached(main: &Main, id: &str, state: ExtensionState) -> Option<String> {
    let mut events = main.control().events();
    loop {
        let status = main.control().status(id).unwrap();
        if status.state == state {
            return status.reason;
        }
        // The next event may be that of a state which has passed by now.
        if let MainEvent::State { extension, to, reason, .. } = events.next().await.unwrap()
            && (extension.as_str(), to) == (id, state)
        {
            return reason;
        }
    }
}

pub(crate) async fn until(is: impl Fn() -> bool) {
    while !is() {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn taken(main: &Main, id: &str) {
    until(|| main.control().status(id).unwrap().inbox_messages == 0).await;
}

/// All states of extensions, in order, until Main ends.
pub(crate) async fn states(mut events: weir_host::events::MainEvents) -> Vec<(String, ExtensionState)> {
    let mut states = Vec::new();
    while let Some(event) = events.next().await {
        if let MainEvent::State { extension, to, .. } = event {
            states.push((extension.to_string(), to));
        }
    }
    states
}

/// `gate@1`: its only operation, `pass`, answers when the test allows.
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Of a Main that serves `gate@1`.
    pub(crate) fn config(extensions: Vec<ExtensionConfig>) -> Config {
        let mut config = config(extensions);
        config.main.serves = vec!["gate@1".parse().unwrap()];
        config
    }

    /// A Main that serves `gate@1`.
    pub(crate) async fn start(&self, extensions: Vec<ExtensionConfig>) -> Main {
        builder(extensions).serve(self.service()).start().await.unwrap()
    }

    pub(crate) fn service(&self) -> Service {
        let permits = self.0.clone();
        Service::new("gate@1".parse().unwrap()).on("pass".parse().unwrap(), move |request| {
            let permits = permits.clone();
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(request.payload)
            }
        })
    }

    pub(crate) fn open(&self, passes: usize) {
        self.0.add_permits(passes);
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.0.available_permits() == 0
    }
}

//! A Main with a well-behaved neighbour, shared by many inputs.

use std::{fs, path::PathBuf, time::Duration};

use tempfile::TempDir;
use tokio::runtime::{self, Runtime};
use weir_host::{
    Builder, CallOptions, Config, ExtensionConfig, Main, MainConfig,
    config::{CpuShare, Limits, RestartPolicy},
};

use crate::world;

/// Enough time on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A Main, and the directory of its extensions' files.
///
/// Each thread has its own, in a thread-local: unlike a static, that is dropped.
pub(crate) struct Stage {
    pub(crate) main: Main,
    // Declared after Main, so dropped after it.
    pub(crate) runtime: Runtime,
    pub(crate) dir: TempDir,
}

impl Stage {
    /// Starts the neighbour, and others with files in `dir`.
    pub(crate) fn new(dir: TempDir, mut main: MainConfig, others: Vec<ExtensionConfig>) -> Self {
        if main.cache_dir.is_none() {
            // Not the cache of the developer.
            main.cache_size = Some(0);
        }
        let extensions = [vec![echo(&dir)], others].concat();
        Self::start(Main::builder(Config::new(main, extensions)), dir)
    }

    pub(crate) fn start(main: Builder, dir: TempDir) -> Self {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let main = runtime.block_on(main.start()).unwrap();
        Self { main, runtime, dir }
    }

    /// Main lives, the neighbour serves, and no wait is left.
    pub(crate) async fn check(&self) {
        self.main.control().ping().await.unwrap();
        let options = CallOptions::default().timeout(PATIENCE);
        let answer = self.main.client().call_with("echo@1", "echo", "are you there?", options).await;
        assert_eq!(answer.as_deref(), Ok(&b"are you there?"[..]), "the neighbour does not serve");
        let quiet = async {
            while self.main.client().waiters() > 0 {
                tokio::task::yield_now().await;
            }
        };
        let waiters = || self.main.client().waiters();
        assert!(tokio::time::timeout(PATIENCE, quiet).await.is_ok(), "{} requests are left over", waiters());
        for status in self.main.control().extensions() {
            assert!(status.memory <= status.memory_limit, "{status:?}");
        }
    }
}

/// Small limits, except the share: an extension over its share is delayed, and the test would wait.
pub(crate) fn limits() -> Limits {
    let mut limits = Limits::min();
    limits.memory = 1 << 20;
    limits.cpu_share = CpuShare::WHOLE;
    limits.fuel_to_start = 1_000_000;
    limits.fuel_per_message = 1_000_000;
    limits.inbox_messages = 8;
    limits.in_flight = 4;
    limits
}

pub(crate) fn extension(dir: &TempDir, id: &str, component: &[u8]) -> ExtensionConfig {
    let path = dir.path().join(format!("{id}.wasm"));
    fs::write(&path, component).unwrap();
    extension_at(id, path)
}

pub(crate) fn extension_at(id: &str, path: PathBuf) -> ExtensionConfig {
    let mut extension = ExtensionConfig::new(id.parse().unwrap(), path);
    extension.limits = limits();
    extension.restart.policy = RestartPolicy::Never;
    extension
}

/// The component of [`echo`].
pub(crate) fn echo_component() -> Vec<u8> {
    world::component_of(include_str!("echo.wat"))
}

/// Answers each request with its payload.
fn echo(dir: &TempDir) -> ExtensionConfig {
    let mut echo = extension(dir, "echo", &echo_component());
    echo.fulfills = vec!["echo@1".parse().unwrap()];
    // The fuzzed extension may keep it waiting.
    echo.limits.ready_timeout = PATIENCE;
    echo
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rewritten if the variable `WEIR_BLESS` is set.
    #[test]
    fn the_first_example_for_embedders_has_the_component_of_echo_wat() {
        let file =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../host/main/examples/echo.wasm");
        let component = echo_component();
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(&file, &component).unwrap();
        }
        let is_the_same = std::fs::read(&file).unwrap() == component;
        assert!(is_the_same, "`{}` is out of date: set `WEIR_BLESS` and test again", file.display());
    }
}

//! Reads configurations with the sections of Weir's own crates.

use std::path::Path;

use weir_config::{Config, ConfigErrors, Loader};
use weir_hooks::HooksConfig;

/// Reads a configuration file and the files it includes: see [`Loader::load`].
///
/// # Errors
///
/// All mistakes in them.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    loader().load(path)
}

/// Reads a configuration from text: see [`Loader::parse`].
///
/// # Errors
///
/// The errors of [`load`].
pub fn parse(text: &str, name: &str, base_dir: &Path) -> Result<Config, ConfigErrors> {
    loader().parse(text, name, base_dir)
}

/// A loader for all of Weir's tables. Register your program's own sections with it.
#[must_use]
pub fn loader() -> Loader {
    let loader = Loader::new().section::<HooksConfig>();
    #[cfg(feature = "http")]
    let loader = loader.section::<weir_http::HttpConfig>();
    #[cfg(not(feature = "http"))]
    let loader = loader.without("http", "http");
    #[cfg(feature = "store")]
    let loader = loader.section::<weir_store::StoresConfig>();
    #[cfg(not(feature = "store"))]
    let loader = loader.without("store", "store");
    loader
}

/// Adds empty sections of hooks and stores if they are missing, so that a configuration made in Rust is checked like
/// one from a file, and the usual cache if none is named and nothing speaks against it.
pub(crate) fn complete(config: &mut Config) {
    if config.section::<HooksConfig>().is_none() {
        config.set_section(HooksConfig::default());
    }
    #[cfg(feature = "store")]
    if config.section::<weir_store::StoresConfig>().is_none() {
        config.set_section(weir_store::StoresConfig::default());
    }
    if config.main.cache_dir.is_none() && config.main.cache_size != Some(0) {
        config.main.cache_dir = weir_guest::default_cache();
        // Nobody named this directory, so it must not make a good configuration bad.
        if config.check().is_err() {
            config.main.cache_dir = None;
        }
    }
}

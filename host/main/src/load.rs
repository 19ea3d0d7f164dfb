//! Reads configurations with all sections that Weir's own crates bring.

use std::path::Path;

use weir_config::{Config, ConfigErrors, Loader};
use weir_hooks::HooksConfig;

/// Reads a file of the operator's, and those that it includes: see [`Loader::load`].
///
/// # Errors
///
/// Fails with all that is wrong with them.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    loader().load(path)
}

/// Reads a text as [`load`] reads a file: see [`Loader::parse`].
///
/// # Errors
///
/// As [`load`].
pub fn parse(text: &str, name: &str, base_dir: &Path) -> Result<Config, ConfigErrors> {
    loader().parse(text, name, base_dir)
}

/// Knows all tables of Weir. A program that has sections of its own registers them with it.
#[must_use]
pub fn loader() -> Loader {
    Loader::new().section::<HooksConfig>()
}

/// Has every section of Weir's, as if an empty file was read: what they serve does not depend on a file.
pub(crate) fn complete(config: &mut Config) {
    if config.section::<HooksConfig>().is_none() {
        config.set_section(HooksConfig::default());
    }
}

//! Reads the operator's file with the tables of this program. A reload reads it with the same ones.

use std::path::Path;

use weir_host::config::{Config, ConfigErrors, Loader};

/// Reads a configuration file and the files that it includes.
pub(crate) fn load(path: &Path) -> Result<Config, ConfigErrors> {
    loader().load(path)
}

/// Reads configurations with the tables of this program.
#[cfg(feature = "gateway")]
pub(crate) fn loader() -> Loader {
    weir_host::loader().section::<weir_gateway::GatewayConfig>()
}

/// Reads configurations with the tables of this program.
#[cfg(not(feature = "gateway"))]
pub(crate) fn loader() -> Loader {
    weir_host::loader().refuse("gateway", "cannot be used: this build of Weir has no gateway")
}

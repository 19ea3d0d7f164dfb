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
    weir_host::loader().section::<without_gateway::NoGateway>()
}

#[cfg(not(feature = "gateway"))]
mod without_gateway {
    use weir_host::config::extend::{ConfigSection, Section, Settling};

    /// Refuses the table: without it the operator would take it for a misspelt one.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub(super) struct NoGateway;

    impl ConfigSection for NoGateway {
        const TABLE: &'static str = "gateway";
        type Draft = ();
        type Locations = ();

        fn read((): &mut (), file: &mut Section<'_, '_>) {
            file.refuse(Self::TABLE, "cannot be used: this build of Weir has no gateway");
        }

        fn settle((): (), _settling: &mut Settling<'_>) -> (Self, ()) {
            (Self, ())
        }
    }
}

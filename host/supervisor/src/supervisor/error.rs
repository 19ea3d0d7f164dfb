//! Why an order to the supervisor was not carried out.

use weir_names::ExtensionId;
use weir_versions::VersionError;

/// Why an extension was not started, stopped or reloaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No extension has this id.
    #[error("no extension `{0}` is configured")]
    Unknown(String),
    /// The extension did not become ready.
    #[error("`{id}` did not start: {reason}")]
    NotStarted {
        /// The extension.
        id: ExtensionId,
        /// Why it did not.
        reason: String,
    },
    /// The new version was not loaded or did not come up, or the reload was given up.
    #[error("`{id}` was not reloaded: {reason}")]
    NotReloaded {
        /// The extension.
        id: ExtensionId,
        /// Why it was not.
        reason: String,
    },
    /// Another reload of this extension, or of the configuration, is under way.
    #[error("{0} is being reloaded already: try again when that is done")]
    Reloading(String),
    /// The new configuration has a mistake, or this Main cannot take it. Nothing of it was applied.
    #[error("the configuration was not changed: {0}")]
    NotConfigured(String),
    /// Main was not started from a file.
    #[error("this Main was not started from a file: there is nothing to read again")]
    NoFile,
    /// The order about the versions of an extension cannot be carried out.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// Main is shutting down, or has shut down.
    #[error("main is shutting down")]
    ShuttingDown,
}

impl ControlError {
    /// The case in one word, such as `not-started`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown-extension",
            Self::NotStarted { .. } => "not-started",
            Self::NotReloaded { .. } => "not-reloaded",
            Self::Reloading(_) => "reloading",
            Self::NotConfigured(_) => "not-configured",
            Self::Version(VersionError::NotSaved(_)) => "not-saved",
            Self::Version(_) => "no-version",
            Self::NoFile => "no-file",
            Self::ShuttingDown => "shutting-down",
        }
    }
}

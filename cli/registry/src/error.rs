//! What goes wrong between this program and a registry, and the exit code of each case.

use std::time::Duration;

use weir_names::harmless;

/// Most bytes of a registry's words in a message.
const WORDS_MAX: usize = 300;

/// Why a registry did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error("cannot reach `{host}`: {why}")]
    Unreachable { host: String, why: String },
    #[error("`{host}` has no {what}{}", words(.said))]
    Unknown { host: String, what: String, said: String },
    #[error("`{host}` does not allow it: {why}")]
    Denied { host: String, why: String },
    #[error("`{host}` {what} {}: `--idle-timeout` (`WEIR_REGISTRY_IDLE_TIMEOUT`) would allow more", humantime::format_duration(*.time))]
    Idle { host: String, what: &'static str, time: Duration },
    #[error("it did not end within {}: `--timeout` (`WEIR_REGISTRY_TIMEOUT`) would allow more", humantime::format_duration(*.0))]
    Late(Duration),
    /// It does not keep to the protocol, or to its own word.
    #[error("`{host}` {what}")]
    Broken { host: String, what: String },
}

impl RegistryError {
    /// The exit code, as the command `weir` has them.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Broken { .. } => 1,
            Self::Unreachable { .. } => 3,
            Self::Unknown { .. } => 4,
            Self::Denied { .. } => 5,
            Self::Idle { .. } | Self::Late(_) => 6,
        }
    }
}

/// A registry's words at the end of a message, if it had any.
pub(crate) fn words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {}", harmless(said, WORDS_MAX)) }
}

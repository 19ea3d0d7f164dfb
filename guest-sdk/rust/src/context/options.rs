//! The options of one call.

use std::time::Duration;

/// The timeout and the provider of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions<'a> {
    pub(super) timeout: Option<Duration>,
    pub(super) provider: Option<&'a str>,
}

impl<'a> CallOptions<'a> {
    /// The operator's default timeout, and the owner of the contract.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits at most this long, in whole milliseconds, from 1.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Calls this extension, or `main`, even if another owns the contract.
    #[must_use]
    pub fn provider(self, id: &'a str) -> Self {
        Self { provider: Some(id), ..self }
    }
}

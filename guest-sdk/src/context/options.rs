//! How a call differs from the usual one.

use std::time::Duration;

/// How a call differs from the usual one.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions<'a> {
    pub(super) timeout: Option<Duration>,
    pub(super) provider: Option<&'a str>,
}

impl<'a> CallOptions<'a> {
    /// The operator's default timeout, and whoever owns the contract.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for this long at most, in whole milliseconds, from 1.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Calls this extension, or `main`, whoever owns the contract.
    #[must_use]
    pub fn provider(self, id: &'a str) -> Self {
        Self { provider: Some(id), ..self }
    }
}

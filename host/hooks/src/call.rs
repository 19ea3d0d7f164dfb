//! What one run of a directory passes to its hooks.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;

/// What one run of a directory passes to each of its hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCall {
    /// The parameters: variables of the hook's environment. They go before those of the surroundings.
    pub params: BTreeMap<String, String>,
    /// Surroundings of this run, beside those that the operator grants and before them.
    pub env: BTreeMap<String, String>,
    /// Arguments, after the hook's name.
    pub args: Vec<String>,
    /// What each hook reads from its standard input.
    pub stdin: Bytes,
    /// Time that all hooks may take together, if less than
    /// [`HookDirConfig::total_timeout`](crate::HookDirConfig::total_timeout).
    pub timeout: Option<Duration>,
}

impl HookCall {
    /// Passes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more parameter.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// With one more variable of the surroundings.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.args.push(argument.into());
        self
    }

    /// With this on standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Bytes>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// In at most this time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

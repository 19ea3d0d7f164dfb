//! The input of one run of a directory.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;

/// The input of one run of a directory, the same for each hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCall {
    /// Parameters: environment variables that override all others.
    pub params: BTreeMap<String, String>,
    /// Environment variables that override the operator's.
    pub env: BTreeMap<String, String>,
    /// Arguments after the hook's name.
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: Bytes,
    /// Time limit for all hooks together, if less than
    /// [`HookDirConfig::total_timeout`](crate::HookDirConfig::total_timeout).
    pub timeout: Option<Duration>,
}

impl HookCall {
    /// Empty input.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.args.push(argument.into());
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Bytes>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

//! How often an extension has failed of late.

use std::{collections::VecDeque, time::Duration};

use weir_config::RestartConfig;

/// When an extension has failed: only as far back as the window reaches, and no more than are allowed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(VecDeque<Duration>);

impl Failures {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Counts a failure; which one in the window it is, from 1. None: it is one too many.
    pub(super) fn add(&mut self, at: Duration, restart: &RestartConfig) -> Option<u32> {
        self.0.push_back(at);
        // A smaller window or number may have been configured since the last.
        while self.0.front().is_some_and(|first| at.saturating_sub(*first) >= restart.window) {
            self.0.pop_front();
        }
        let number = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        (number < restart.failures).then_some(number)
    }
}

//! The recent failures of one extension.

use std::{collections::VecDeque, time::Duration};

use weir_config::RestartConfig;

/// Their times, within the window and no more than allowed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(VecDeque<Duration>);

impl Failures {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Counts a failure; returns its number in the window, from 1. None: one too many.
    pub(super) fn add(&mut self, at: Duration, restart: &RestartConfig) -> Option<u32> {
        self.0.push_back(at);
        // The window or the number may have been made smaller since.
        while self.0.front().is_some_and(|first| at.saturating_sub(*first) >= restart.window) {
            self.0.pop_front();
        }
        let number = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        (number < restart.failures).then_some(number)
    }
}

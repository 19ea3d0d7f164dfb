//! The life of one extension, as a state machine that turns events into steps.
//!
//! The state machine has neither clock nor randomness: events carry the time and the random number for a delay. It
//! knows no other extension: its caller says when requirements are there.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

use weir_config::{RestartConfig, RestartPolicy};
use weir_reports::ExtensionState;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LifecycleEvent {
    /// The extension should run. Does not lift a quarantine.
    Start,
    Launched,
    /// What the extension requires does not come.
    Blocked,
    Ready,
    Interrupted,
    Stop,
    /// The extension should end and start again, and its failures are forgotten.
    Restart,
    /// The extension should end and start again as another version.
    Replace {
        /// Whether the present version is kept until the other one is ready.
        is_kept: bool,
    },
    /// An instance of another version, started beside it, takes its place.
    TakenOver {
        /// Whether the other instance serves already.
        is_ready: bool,
    },
    /// The instance that starts has ended before its program ran, because another version is to start.
    Instead,
    Ended {
        /// Whether the instance ended by itself, as it should.
        clean: bool,
        /// Whether it could not start, and another start would fail the same way.
        hopeless: bool,
        /// Whether it could not start through no fault of its own. The cause may last, so it counts as no failure.
        hindered: bool,
        at: Duration,
        /// A random number from 0 to 1 for the length of a delay.
        draw: f64,
    },
    /// The instance was ended by a caller, who wanted the work for a request ended. That is no failure of the extension.
    Killed,
    /// The restart delay is over.
    Due,
    /// The restart policy may have changed.
    Retuned,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    None,
    /// Tell the instance to finish.
    Drain,
    /// Send `Due` after this time.
    Delay(Duration),
    /// Put the version before into use again.
    FallBack,
    /// Start nothing, because the extension is in quarantine.
    Refuse,
}

#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    state: ExtensionState,
    /// Whether the extension starts as soon as what it requires is ready.
    is_wanted: bool,
    /// Whether another instance follows the one that drains.
    is_replaced: bool,
    /// Whether the version before is kept until this one is ready.
    is_on_trial: bool,
    /// Whether the last end was as it should be.
    has_ended_clean: bool,
    failures: Failures,
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        Self {
            state: ExtensionState::Loaded,
            is_wanted: false,
            is_replaced: false,
            is_on_trial: false,
            has_ended_clean: false,
            failures: Failures::default(),
        }
    }

    pub(super) fn state(&self) -> ExtensionState {
        self.state
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(
            self.state,
            ExtensionState::Starting
                | ExtensionState::Ready
                | ExtensionState::Interrupted
                | ExtensionState::Draining
        )
    }

    /// Whether the extension starts as soon as what it requires is ready.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_wanted && !self.is_running() && self.state != ExtensionState::BackingOff
    }

    /// Whether extensions that require this one can start.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, ExtensionState::Ready | ExtensionState::Interrupted)
    }

    /// Whether another instance comes at once if a caller has the running one ended. One on trial that may not serve yet
    /// has failed its trial, and one that drains goes its way.
    pub(super) fn comes_after_kill(&self) -> bool {
        self.is_there() || (self.state == ExtensionState::Starting && !self.is_on_trial)
    }

    /// Whether an instance is on its way: it starts, waits for what it requires, or follows one that drains. A failed
    /// extension is not on its way, even if it waits.
    pub(super) fn is_coming(&self) -> bool {
        self.state == ExtensionState::Starting
            || (self.state == ExtensionState::Draining && self.is_replaced)
            || (self.is_waiting() && self.state != ExtensionState::Failed)
    }

    pub(super) fn is_on_trial(&self) -> bool {
        self.is_on_trial
    }

    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    /// Applies an event under the operator's restart policy, and returns the step to take. An event without meaning in
    /// the present state changes nothing.
    pub(super) fn apply(&mut self, event: LifecycleEvent, restart: &RestartConfig) -> Step {
        match event {
            LifecycleEvent::Start => self.start(),
            LifecycleEvent::Launched if self.is_waiting() => self.enter(ExtensionState::Starting),
            LifecycleEvent::Blocked if self.is_waiting() && self.is_on_trial => self.fall_back(),
            LifecycleEvent::Blocked if self.is_waiting() => self.enter(ExtensionState::Failed),
            LifecycleEvent::Ready if self.is_up() => {
                self.is_on_trial = false;
                self.enter(ExtensionState::Ready)
            }
            // An interrupted instance is not known to serve, so its trial goes on.
            LifecycleEvent::Interrupted if self.is_up() => self.enter(ExtensionState::Interrupted),
            LifecycleEvent::Stop => self.stop(),
            LifecycleEvent::Restart => {
                self.failures = Failures::default();
                self.is_on_trial = false;
                self.begin_again()
            }
            LifecycleEvent::Replace { is_kept } if self.state != ExtensionState::Quarantined => {
                self.is_on_trial = is_kept;
                self.begin_again()
            }
            LifecycleEvent::TakenOver { is_ready } if self.state != ExtensionState::Quarantined => {
                self.is_wanted = true;
                self.is_on_trial = !is_ready;
                self.enter(if is_ready { ExtensionState::Ready } else { ExtensionState::Starting })
            }
            LifecycleEvent::Instead if self.is_up() => {
                self.is_wanted = true;
                self.enter(ExtensionState::Loaded)
            }
            LifecycleEvent::Ended { clean, hopeless, hindered, at, draw } if self.is_running() => {
                if let Some(step) = self.end(clean, hopeless, restart) {
                    return step;
                }
                if hindered { self.delay(u32::MAX, draw, restart) } else { self.fail(at, draw, restart) }
            }
            LifecycleEvent::Killed if self.comes_after_kill() => self.enter(ExtensionState::Loaded),
            LifecycleEvent::Due if self.state == ExtensionState::BackingOff => {
                self.enter(ExtensionState::Loaded)
            }
            LifecycleEvent::Retuned
                if self.state == ExtensionState::BackingOff && !self.comes_again(restart.policy) =>
            {
                self.end_for_good()
            }
            _ => Step::None,
        }
    }

    fn enter(&mut self, state: ExtensionState) -> Step {
        self.state = state;
        Step::None
    }

    /// Whether an instance runs that was not told to finish.
    fn is_up(&self) -> bool {
        self.is_running() && self.state != ExtensionState::Draining
    }

    fn start(&mut self) -> Step {
        match self.state {
            ExtensionState::Quarantined => return Step::Refuse,
            ExtensionState::BackingOff | ExtensionState::Failed => self.state = ExtensionState::Loaded,
            _ => {}
        }
        self.is_wanted = true;
        self.is_replaced |= self.state == ExtensionState::Draining;
        Step::None
    }

    fn stop(&mut self) -> Step {
        self.is_wanted = false;
        self.is_replaced = false;
        self.is_on_trial = false;
        if self.is_running() {
            return self.drain();
        }
        // The failures stay, because a stop does not lift a quarantine.
        if matches!(self.state, ExtensionState::BackingOff | ExtensionState::Failed) {
            self.state = ExtensionState::Stopped;
        }
        Step::None
    }

    /// Makes the extension start again, after the running instance has drained if there is one.
    fn begin_again(&mut self) -> Step {
        self.is_wanted = true;
        if self.is_running() {
            self.is_replaced = true;
            return self.drain();
        }
        self.enter(ExtensionState::Loaded)
    }

    fn drain(&mut self) -> Step {
        let is_new = self.state != ExtensionState::Draining;
        self.state = ExtensionState::Draining;
        if is_new { Step::Drain } else { Step::None }
    }

    fn fall_back(&mut self) -> Step {
        self.is_on_trial = false;
        self.state = ExtensionState::Loaded;
        Step::FallBack
    }

    /// Ends an instance that was told to end, was on trial, or is not to start again, and returns the step. Returns
    /// none if the policy starts the extension again: then the caller decides between a delay and a quarantine.
    fn end(&mut self, clean: bool, hopeless: bool, restart: &RestartConfig) -> Option<Step> {
        if self.state == ExtensionState::Draining {
            let again = std::mem::take(&mut self.is_replaced);
            return Some(self.enter(if again { ExtensionState::Loaded } else { ExtensionState::Stopped }));
        }
        if self.is_on_trial {
            return Some(self.fall_back());
        }
        self.has_ended_clean = clean;
        if hopeless || !self.comes_again(restart.policy) {
            return Some(self.end_for_good());
        }
        None
    }

    /// Whether the policy starts the extension again after its last end.
    fn comes_again(&self, policy: RestartPolicy) -> bool {
        match policy {
            RestartPolicy::Never => false,
            RestartPolicy::OnFailure => !self.has_ended_clean,
            RestartPolicy::Always => true,
        }
    }

    /// Ends the extension without a restart, as stopped or failed.
    fn end_for_good(&mut self) -> Step {
        self.is_wanted = false;
        self.enter(if self.has_ended_clean { ExtensionState::Stopped } else { ExtensionState::Failed })
    }

    /// Counts a failure. Returns a delay before the next start, or enters the quarantine.
    fn fail(&mut self, at: Duration, draw: f64, restart: &RestartConfig) -> Step {
        match self.failures.add(at, restart) {
            Some(number) => self.delay(number, draw, restart),
            None => {
                self.is_wanted = false;
                self.enter(ExtensionState::Quarantined)
            }
        }
    }

    fn delay(&mut self, number: u32, draw: f64, restart: &RestartConfig) -> Step {
        self.state = ExtensionState::BackingOff;
        Step::Delay(restart.delay(number, draw))
    }
}

/// The times of the recent failures, within the window and no more than allowed.
#[derive(Clone, Debug, Default)]
struct Failures(VecDeque<Duration>);

impl Failures {
    fn len(&self) -> usize {
        self.0.len()
    }

    /// Counts a failure, and returns its number in the window, from 1. Returns none if the number of failures that
    /// quarantines the extension is reached.
    fn add(&mut self, at: Duration, restart: &RestartConfig) -> Option<u32> {
        self.0.push_back(at);
        // A loop, because the window may have been made smaller since.
        while self.0.front().is_some_and(|first| at.saturating_sub(*first) >= restart.window) {
            self.0.pop_front();
        }
        let number = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        (number < restart.failures).then_some(number)
    }
}

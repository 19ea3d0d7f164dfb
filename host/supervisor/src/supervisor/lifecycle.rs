//! The life of one extension as a state machine: what happens goes in, what is to be done comes out.
//!
//! Has no clock and no chance of its own: the time and the draw of a delay come with the event. Knows
//! of no other extension: whoever drives it says when what the extension requires is there.

mod failures;
#[cfg(test)]
mod tests;

use std::time::Duration;

use weir_config::{RestartConfig, RestartPolicy};

use self::failures::Failures;
use crate::roster::ExtensionState;

/// What happens to an extension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LifecycleEvent {
    /// It is to run. Does not lift a quarantine.
    Start,
    /// An instance of it has been started.
    Launched,
    /// What it requires does not come: it waits in vain, until it does.
    Blocked,
    /// The instance says that it serves.
    Ready,
    /// The instance runs, and says that it cannot serve for now.
    Interrupted,
    /// It is to end, and not to run again.
    Stop,
    /// It is to end, and to start again with nothing held against it.
    Restart,
    /// It is to end, and to start again as another version.
    Replace {
        /// Whether the present one is kept until that is ready.
        is_kept: bool,
    },
    /// An instance of another version that started beside it is the extension from now on.
    TakenOver {
        /// Whether that serves already.
        is_ready: bool,
    },
    /// The instance has ended.
    Ended {
        /// Whether as it should, by itself.
        clean: bool,
        /// Whether another would end as it did: it could not even be started.
        hopeless: bool,
        /// Whether it could not be started through no fault of its own, which may last.
        hindered: bool,
        /// When, on a clock that never goes back.
        at: Duration,
        /// What is drawn for the delay, from 0 to 1.
        draw: f64,
    },
    /// The delay before its restart is over.
    Due,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing more.
    None,
    /// The instance is to be told to stop.
    Drain,
    /// `Due` is to be said after this time.
    Delay(Duration),
    /// The version before is to be started again.
    FallBack,
    /// It has failed too often to be started.
    Refuse,
}

/// Where one extension is in its life.
#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    state: ExtensionState,
    /// It is to run as soon as what it requires is ready, unless it does.
    is_wanted: bool,
    /// It starts again when it has drained.
    is_replaced: bool,
    /// Another version is kept, until this one is ready.
    is_on_trial: bool,
    failures: Failures,
}

impl Lifecycle {
    /// One that has not been started.
    pub(super) fn new() -> Self {
        Self {
            state: ExtensionState::Loaded,
            is_wanted: false,
            is_replaced: false,
            is_on_trial: false,
            failures: Failures::default(),
        }
    }

    pub(super) fn state(&self) -> ExtensionState {
        self.state
    }

    /// Whether an instance of it runs.
    pub(super) fn is_running(&self) -> bool {
        matches!(
            self.state,
            ExtensionState::Starting
                | ExtensionState::Ready
                | ExtensionState::Interrupted
                | ExtensionState::Draining
        )
    }

    /// Whether it would be started now, if what it requires is ready.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_wanted && !self.is_running() && self.state != ExtensionState::BackingOff
    }

    /// Whether it serves or has said that it cannot for now: what requires it can start.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, ExtensionState::Ready | ExtensionState::Interrupted)
    }

    /// Whether it is on its way to be there.
    pub(super) fn is_coming(&self) -> bool {
        self.state == ExtensionState::Starting
            || (self.state == ExtensionState::Draining && self.is_replaced)
            || (self.is_waiting() && self.state != ExtensionState::Failed)
    }

    /// Whether another version is kept until this one is ready.
    pub(super) fn is_on_trial(&self) -> bool {
        self.is_on_trial
    }

    /// How many failures count against it.
    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    /// What comes of an event, under the operator's policy. An event that makes no sense in the present
    /// state changes nothing.
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
            // It says nothing of whether it can serve: its trial goes on.
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
            LifecycleEvent::Ended { clean, hopeless, hindered, at, draw } if self.is_running() => {
                if let Some(step) = self.end(clean, hopeless, restart) {
                    return step;
                }
                if hindered { self.delay(u32::MAX, draw, restart) } else { self.fail(at, draw, restart) }
            }
            LifecycleEvent::Due if self.state == ExtensionState::BackingOff => {
                self.enter(ExtensionState::Loaded)
            }
            _ => Step::None,
        }
    }

    fn enter(&mut self, state: ExtensionState) -> Step {
        self.state = state;
        Step::None
    }

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
        // What it has against it stays: a stop does not lift a quarantine.
        if matches!(self.state, ExtensionState::BackingOff | ExtensionState::Failed) {
            self.state = ExtensionState::Stopped;
        }
        Step::None
    }

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

    /// None: it is to be started again.
    fn end(&mut self, clean: bool, hopeless: bool, restart: &RestartConfig) -> Option<Step> {
        if self.state == ExtensionState::Draining {
            let again = std::mem::take(&mut self.is_replaced);
            return Some(self.enter(if again { ExtensionState::Loaded } else { ExtensionState::Stopped }));
        }
        if self.is_on_trial {
            return Some(self.fall_back());
        }
        let counts = match restart.policy {
            RestartPolicy::Never => false,
            RestartPolicy::OnFailure => !clean,
            RestartPolicy::Always => true,
        };
        if hopeless || !counts {
            self.is_wanted = false;
            return Some(self.enter(if clean { ExtensionState::Stopped } else { ExtensionState::Failed }));
        }
        None
    }

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

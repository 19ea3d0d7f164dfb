//! Deaths from outside, and the count of all.

use std::collections::HashMap;

use fastrand::Rng;
use test_guests::churn::RECEIVERS;
use weir_host::{
    Control,
    control::ControlError,
    events::{MainEvent, MainEvents},
};

/// Kills extensions as they come, in random ways, until the channel closes.
pub(crate) async fn kill(control: Control, victims: async_channel::Receiver<String>, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    while let Ok(victim) = victims.recv().await {
        let stays = RECEIVERS.iter().any(|receiver| receiver.id == victim && !receiver.may_leave);
        let ended = match rng.u32(..if stays { 2 } else { 3 }) {
            0 => control.restart(&victim).await,
            1 => control.reload_extension(&victim).await,
            _ => {
                control.stop(&victim).await.unwrap();
                control.start(&victim).await
            }
        };
        match ended {
            // The new instance may have died before it was ready.
            Ok(()) | Err(ControlError::NotStarted { .. } | ControlError::NotReloaded { .. }) => {}
            Err(other) => panic!("{victim}: {other}"),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Deaths {
    by_cause: HashMap<String, u64>,
    overdue: HashMap<String, u64>,
    /// Missed events, each possibly a death.
    missed: u64,
}

/// Parts of causes, each of which must occur.
const TRAPPED: &str = "trapped";
const OUT_OF_FUEL: &str = "fuel-per-message";
const OVERDUE: &str = "did not stop within";
const FINISHED: &str = "finished";
const EXITED: &str = "exited with code";
const KINDS: [&str; 5] = [TRAPPED, OUT_OF_FUEL, OVERDUE, FINISHED, EXITED];

impl Deaths {
    pub(crate) async fn count(mut events: MainEvents) -> Self {
        let mut deaths = Self::default();
        while let Some(event) = events.next().await {
            match event {
                MainEvent::Failed(failure) => {
                    if failure.cause.contains(OVERDUE) {
                        *deaths.overdue.entry(failure.extension.to_string()).or_default() += 1;
                    }
                    *deaths.by_cause.entry(failure.cause).or_default() += 1;
                }
                MainEvent::Lagged { missed } => deaths.missed += missed,
                _ => {}
            }
        }
        deaths
    }

    /// How often an extension was killed at its stop deadline, at most.
    pub(crate) fn overdue(&self, extension: &str) -> u64 {
        self.missed + self.overdue.get(extension).copied().unwrap_or_default()
    }

    pub(crate) fn assert_of_every_kind(&self) {
        for kind in KINDS {
            let died: u64 =
                self.by_cause.iter().filter(|(cause, _)| cause.contains(kind)).map(|(_, count)| count).sum();
            assert!(died >= 20, "{died} died of `{kind}`: {self:?}");
        }
    }
}

//! What all tasks of the bridge share: its file, how far its end has come, what was said so far. And how they wait between
//! attempts.

use std::{collections::HashMap, fmt, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::watch, time};
use weir_names::harmless;
use weir_peer::Peer;

use crate::{config::Config, events::Seen, jobs::Brought, subject::Subjects};

/// Causes that are counted apart; further ones are counted together, because strangers can make any number of them.
/// [`Shared`] counts the bridge's own causes apart from those of strangers.
const CAUSES_MAX: usize = 256;

/// The first pause between attempts, so short that all is there again within a second of a server's return. Pauses vary
/// by chance, so that not all nodes of a fleet come at once.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest pause between attempts to connect.
const LONGEST: Duration = Duration::from_millis(250);

/// What all tasks of the bridge share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) subjects: Subjects,
    /// A random number, by which this process tells itself from another bridge with its name.
    pub(crate) process: u64,
    /// Causes of the bridge's own, which are counted for the log.
    pub(crate) times: Times,
    /// Causes with a stranger's words: they cannot use up what is kept for the bridge's own.
    pub(crate) strangers: Times,
    /// The last numbers of other nodes' events. They outlive a link, so that a loss during its absence shows.
    pub(crate) seen: Mutex<Seen>,
    /// By queue, how often jobs were brought to Main. A server that is killed forgets that.
    pub(crate) brought: Mutex<HashMap<Box<str>, Brought>>,
    stage: watch::Sender<Stage>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Running,
    /// Nothing new begins, and what is in hand goes on.
    Draining,
    /// The bridge no longer waits for what is in hand.
    Stopped,
}

impl Shared {
    pub(crate) fn new(config: Config) -> Self {
        let subjects = Subjects::new(&config.fleet, &config.node);
        let process = fastrand::u64(1..);
        Self {
            config,
            subjects,
            process,
            times: Times::default(),
            strangers: Times::default(),
            seen: Mutex::default(),
            brought: Mutex::default(),
            stage: watch::Sender::new(Stage::Running),
        }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// A wait for the stage in which nothing new begins.
    pub(crate) fn draining(&self) -> Reached {
        Reached { stage: self.stage.subscribe(), wanted: Stage::Draining }
    }

    /// A wait for the end.
    pub(crate) fn stopped(&self) -> Reached {
        Reached { stage: self.stage.subscribe(), wanted: Stage::Stopped }
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.stage.borrow() >= Stage::Draining
    }

    /// Waits for the work, and returns its outcome. `None` if the session ends or the bridge drains first.
    pub(crate) async fn until_over<T>(&self, peer: &Peer, work: impl Future<Output = T>) -> Option<T> {
        let mut draining = self.draining();
        tokio::select! {
            done = work => Some(done),
            _ended = peer.closed() => None,
            () = draining.wait() => None,
        }
    }

    /// Logs that something of a stranger is refused.
    pub(crate) fn refuse(&self, what: fmt::Arguments<'_>, why: &str, subject: &str) {
        let subject = harmless(subject, 200);
        tell!(warn, self.strangers, ("{why}"), "refuses {what}: {why} (subject `{subject}`)");
    }

    /// Whether the name is that of a bridge, whose messages came from other nodes.
    pub(crate) fn is_bridge(sender: &str) -> bool {
        sender.starts_with(crate::config::KIND)
    }
}

/// A wait for a stage.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    stage: watch::Receiver<Stage>,
    wanted: Stage,
}

impl Reached {
    pub(crate) async fn wait(&mut self) {
        let wanted = self.wanted;
        // An error means that the sender is gone, and then the end has come, too.
        drop(self.stage.wait_for(|stage| *stage >= wanted).await);
    }
}

/// How often each thing has happened.
#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<HashMap<String, u64>>);

impl Times {
    /// Counts a cause, and returns the count if it is a power of 2: only then the cause is logged once more.
    pub(crate) fn once_more(&self, cause: &str) -> Option<u64> {
        let mut times = self.0.lock();
        let is_known = times.len() < CAUSES_MAX || times.contains_key(cause);
        let count = times.entry(if is_known { cause } else { "" }.to_owned()).or_default();
        *count += 1;
        count.is_power_of_two().then_some(*count)
    }
}

/// Logs what is said again and again at the 1st, 2nd, 4th, 8th time of its cause and so on: the level, the counts, the cause
/// as for `format!`, and the line.
macro_rules! tell {
    ($level:ident, $times:expr, ($($cause:tt)+), $($line:tt)+) => {
        if let Some(times) = $times.once_more(&format!($($cause)+)) {
            tracing::$level!(times, $($line)+);
        }
    };
}
pub(crate) use tell;

/// The time between attempts, longer after each.
#[derive(Debug)]
pub(crate) struct Pause {
    next: Duration,
    longest: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self::up_to(LONGEST)
    }
}

impl Pause {
    /// Pauses that grow up to `longest`.
    pub(crate) fn up_to(longest: Duration) -> Self {
        Self { next: SHORTEST, longest }
    }

    pub(crate) async fn wait(&mut self) {
        let time = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.longest);
        time::sleep(time).await;
    }

    /// Begins with the shortest pause again, because an attempt has succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = SHORTEST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_a_few_lines() {
        let times = Times::default();
        let said = (0..1000).filter(|_| times.once_more("hall").is_some()).count();
        assert_eq!(said, 10);
        assert_eq!(times.once_more("attic"), Some(1));
    }

    #[test]
    fn causes_without_number_are_counted_together() {
        let times = Times::default();
        let said = (0..100_000).filter(|cause| times.once_more(&cause.to_string()).is_some()).count();
        assert!(said < 300, "{said}");
    }
}

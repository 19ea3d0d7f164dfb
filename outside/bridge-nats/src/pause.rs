//! The time between attempts.

use std::time::Duration;

use tokio::time;

/// Short enough that all is there again within a second of a server's return; with chance, so that not all nodes of a fleet
/// come at once.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(250);

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
    /// A pause of at most so long.
    pub(crate) fn up_to(longest: Duration) -> Self {
        Self { next: SHORTEST, longest }
    }

    pub(crate) async fn wait(&mut self) {
        let time = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.longest);
        time::sleep(time).await;
    }

    /// An attempt has succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = SHORTEST;
    }
}

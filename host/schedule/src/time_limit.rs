//! Time limits that a pause of Main does not use up.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How many parts a limit has. A pause uses up at most one.
const PARTS: u32 = 16;

/// How late a timer may be on a busy machine. A later one shows that Main did not run.
const LATE: Duration = Duration::from_millis(10);

/// A time limit that counts only while Main runs.
///
/// A process that is stopped by a debugger, or with its machine, can neither do the awaited work nor see that it is
/// done. So the limit is slept through in parts, and a part counts once, however late it ends.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    part: Duration,
    left: u32,
    next: Instant,
}

impl TimeLimit {
    /// Makes a limit of this time that starts now.
    pub fn new(time: Duration) -> Self {
        let part = time / PARTS;
        Self { part, left: PARTS, next: Instant::now() + part }
    }

    /// Waits until the limit is over. If the future is dropped, a later call goes on where it stopped.
    pub async fn over(&mut self) {
        while self.left > 0 {
            sleep_until(self.next).await;
            let now = Instant::now();
            if now > self.next + LATE {
                self.next = now;
            }
            self.next += self.part;
            self.left -= 1;
        }
    }

    /// Waits for `work` and returns its outcome, or none if the limit is over first.
    pub async fn within<T>(mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.over() => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(16);

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_as_long_as_it_says() {
        let start = Instant::now();
        TimeLimit::new(LIMIT).over().await;
        assert_eq!(start.elapsed(), LIMIT);
        let short = Duration::from_millis(1);
        TimeLimit::new(short).over().await;
        assert!(start.elapsed() < LIMIT + 3 * short);
    }

    #[tokio::test(start_paused = true)]
    async fn however_long_a_pause_is_one_part_of_the_limit_counts() {
        let mut limit = TimeLimit::new(LIMIT);
        for _ in 0..3 {
            advance(Duration::from_secs(3600)).await;
            let left = Instant::now();
            assert!(limit.within(std::future::ready(())).await.is_some());
            assert!(tokio::time::timeout(Duration::from_millis(1), limit.over()).await.is_err());
            assert!(left.elapsed() < LIMIT);
        }
        let start = Instant::now();
        limit.over().await;
        assert!(start.elapsed() > LIMIT - Duration::from_secs(4), "{:?}", start.elapsed());
    }
}

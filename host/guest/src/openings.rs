//! Opens files and directories for extensions. A dead network file system can block that for any time, so only few
//! threads of the blocking pool do it.
//!
//! Sets no deadline: a caller gives up by its own deadline, and the thread stays with the file.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::{sync::Semaphore, task::JoinError};

use crate::{dir_locks::DirLocks, quota::Quotas};

/// Whether a later try may succeed without a change of configuration, as with a late mount or a server that does not
/// answer. Waiting does not mend the other errors, which are mistakes.
pub(super) fn may_come(error: &io::Error) -> bool {
    !matches!(
        Errno::from_io_error(error),
        Some(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG | Errno::INVAL)
    )
}

/// Opens files and directories on few threads, and holds the locks and quotas of directories.
#[derive(Debug)]
pub struct Openings {
    /// One permit for each list of paths, so that one thread at a time opens the same paths.
    turns: Mutex<HashMap<Vec<PathBuf>, Weak<Semaphore>>>,
    /// A permit for each thread that may open files at once.
    threads: Arc<Semaphore>,
    /// Locks on directories granted for writing.
    pub(super) locks: Arc<DirLocks>,
    /// Directories with a bounded size.
    pub(super) quotas: Arc<Quotas>,
}

impl Openings {
    /// Makes openings that take at most this many threads at once.
    pub fn new(threads: usize) -> Self {
        Self {
            turns: Mutex::default(),
            threads: Arc::new(Semaphore::new(threads)),
            locks: Arc::default(),
            quotas: Arc::default(),
        }
    }

    /// Calls `open` on a thread of the pool, once no other thread opens the same paths and a thread is free. While a
    /// thread hangs at some paths, no other thread opens them. Fails if `open` panics.
    pub(super) async fn open<T: Send + 'static>(
        &self,
        paths: Vec<PathBuf>,
        open: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let turn = self.turn(paths).acquire_owned().await;
        let thread = self.threads.clone().acquire_owned().await;
        let work = move || {
            // The permits are held as long as the thread is taken, even if nobody waits any more.
            let _held = (turn, thread);
            open()
        };
        tokio::task::spawn_blocking(work).await
    }

    /// Returns the permit for these paths.
    fn turn(&self, paths: Vec<PathBuf>) -> Arc<Semaphore> {
        let mut turns = self.turns.lock();
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&paths).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Semaphore::new(1));
        turns.insert(paths, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn paths(path: &str) -> Vec<PathBuf> {
        vec![path.into()]
    }

    /// A function that reports its start and then hangs until released.
    fn hanging() -> (mpsc::Sender<()>, async_channel::Receiver<()>, impl FnOnce() + Send + 'static) {
        let (release, released) = mpsc::channel();
        let (begin, begun) = async_channel::bounded(1);
        let open = move || {
            begin.send_blocking(()).unwrap();
            // Ends also when the test has failed.
            let _end = released.recv();
        };
        (release, begun, open)
    }

    #[test]
    fn what_is_not_there_may_come_and_a_mistake_stays_one() {
        for errno in [Errno::NOENT, Errno::IO, Errno::STALE, Errno::NOTCONN, Errno::TIMEDOUT, Errno::HOSTDOWN]
        {
            assert!(may_come(&errno.into()), "{errno}");
        }
        assert!(may_come(&io::ErrorKind::TimedOut.into()));
        for errno in [Errno::NOTDIR, Errno::LOOP, Errno::ACCESS, Errno::PERM, Errno::NAMETOOLONG] {
            assert!(!may_come(&errno.into()), "{errno}");
        }
    }

    #[tokio::test]
    async fn paths_in_which_a_thread_hangs_take_no_other_and_are_opened_once_it_is_back() {
        let openings = Openings::new(4);
        let (release, begun, hang) = hanging();
        {
            let first = openings.open(paths("/dead"), hang);
            tokio::select! {
                _ = first => panic!("it hangs"),
                began = begun.recv() => began.unwrap(),
            }
            // The caller has given up.
        }
        let threads = openings.threads.clone();
        assert_eq!(threads.available_permits(), 3);
        let mut second = Box::pin(openings.open(paths("/dead"), || "second"));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(threads.available_permits(), 3);
        let other = timeout(PATIENCE, openings.open(paths("/alive"), || "other")).await;
        assert_eq!(other.unwrap().unwrap(), "other");
        release.send(()).unwrap();
        assert_eq!(timeout(PATIENCE, second).await.unwrap().unwrap(), "second");
    }

    #[tokio::test]
    async fn what_hangs_takes_no_more_than_its_share_of_the_threads() {
        let openings = Openings::new(2);
        let mut releases = Vec::new();
        for path in ["/dead/1", "/dead/2"] {
            let (release, begun, hang) = hanging();
            tokio::select! {
                _ = openings.open(paths(path), hang) => panic!("it hangs"),
                began = begun.recv() => began.unwrap(),
            }
            releases.push(release);
        }
        let mut third = Box::pin(openings.open(paths("/dead/3"), || "third"));
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(openings.threads.available_permits(), 0);
        releases.pop();
        assert_eq!(timeout(PATIENCE, third).await.unwrap().unwrap(), "third");
    }
}

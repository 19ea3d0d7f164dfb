//! Futures of this library on Main's thread. Each has an end: its own, or Main's.

use std::{future::Future, pin::Pin, sync::Arc};

use async_channel::{Receiver, Sender};
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError},
    task::JoinSet,
};
use weir_host::{Error, attached::Attached};

use crate::error::weir_error;

/// The most asynchronous calls and subscriptions with a callback at once. Each call holds its payload in memory.
const AT_ONCE: usize = 4096;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins futures on Main's thread.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    room: Arc<Semaphore>,
    queue: Sender<Task>,
    open: Arc<RwLock<()>>,
}

/// The futures that are to begin. Dropped on Main's thread, it drops them there.
#[derive(Debug)]
pub(crate) struct Queue {
    tasks: Receiver<Task>,
    /// Locked while the queue closes, and shared while a future is put into it.
    open: Arc<RwLock<()>>,
}

/// Room for one future in the queue, which stays open meanwhile.
#[derive(Debug)]
pub(crate) struct Room<'w> {
    permit: OwnedSemaphorePermit,
    queue: &'w Sender<Task>,
    _open: RwLockReadGuard<'w, ()>,
}

impl Work {
    pub(crate) fn new() -> (Self, Queue) {
        // A future in the queue has a permit, so the queue is never full.
        let (queue, tasks) = async_channel::bounded(AT_ONCE);
        let open = Arc::<RwLock<()>>::default();
        (Self { room: Arc::new(Semaphore::new(AT_ONCE)), queue, open: open.clone() }, Queue { tasks, open })
    }

    /// Room for one more future, taken before anything is promised to C.
    pub(crate) fn room(&self) -> Result<Room<'_>, weir_error> {
        let _open = self.open.read();
        if self.queue.is_closed() {
            return Err(weir_error::ended());
        }
        match self.room.clone().try_acquire_owned() {
            Ok(permit) => Ok(Room { permit, queue: &self.queue, _open }),
            Err(TryAcquireError::NoPermits) => {
                let (used, allowed) = (AT_ONCE as u64 + 1, AT_ONCE as u64);
                let name = "asynchronous calls and subscriptions".into();
                Err(Error::LimitExceeded { name, used, allowed }.into())
            }
            Err(TryAcquireError::Closed) => Err(weir_error::ended()),
        }
    }
}

impl Room<'_> {
    /// Runs `work` on Main's thread, or drops it if Main ends.
    pub(crate) fn spawn(self, work: impl Future<Output = ()> + Send + 'static) {
        let Self { permit, queue, _open } = self;
        let task = Box::pin(async move {
            let _permit = permit;
            work.await;
        });
        // Cannot fail: the queue is open, and has as much room as there are permits.
        drop(queue.try_send(task));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        {
            let _nobody_puts = self.open.write();
            self.tasks.close();
        }
        // Dropping a future tells its callback that Main has ended.
        while let Ok(task) = self.tasks.try_recv() {
            drop(task);
        }
    }
}

/// Runs the futures that arrive, until Main has stopped everything else.
pub(crate) async fn run(mut attached: Attached, queue: Queue) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            () = attached.closed.wait() => break,
            Ok(task) = queue.tasks.recv() => {
                tasks.spawn(task);
            }
            Some(_ended) = tasks.join_next() => {}
        }
    }
    drop(queue);
    // Dropping what still runs tells its callbacks that Main has ended.
    tasks.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        thread::{self, ThreadId},
    };

    use super::*;

    /// Counts in `.1` if it is dropped on the thread `.0`.
    struct Dropped(ThreadId, Arc<AtomicU64>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            if thread::current().id() == self.0 {
                self.1.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn however_main_ends_no_future_is_dropped_on_the_thread_that_gave_it() {
        let here = Arc::<AtomicU64>::default();
        for round in 0..1000 {
            let (work, queue) = Work::new();
            thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..round % 16 {
                        thread::yield_now();
                    }
                    drop(queue);
                });
                while let Ok(room) = work.room() {
                    let dropped = Dropped(thread::current().id(), here.clone());
                    room.spawn(async move { drop(dropped) });
                }
            });
        }
        assert_eq!(here.load(Ordering::Relaxed), 0);
    }
}

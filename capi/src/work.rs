//! Futures of this library on Main's thread. Each has an end: its own, or Main's.

use std::{future::Future, pin::Pin, sync::Arc};

use async_channel::{Receiver, Sender};
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
#[derive(Debug)]
pub(crate) struct Work {
    room: Arc<Semaphore>,
    queue: Sender<Task>,
}

/// Room for one future.
#[derive(Debug)]
pub(crate) struct Room<'w>(OwnedSemaphorePermit, &'w Sender<Task>);

impl Work {
    pub(crate) fn new() -> (Self, Receiver<Task>) {
        // A future in the queue has a permit, so the queue is never full.
        let (queue, tasks) = async_channel::bounded(AT_ONCE);
        (Self { room: Arc::new(Semaphore::new(AT_ONCE)), queue }, tasks)
    }

    /// Room for one more future, taken before anything is promised to C.
    pub(crate) fn room(&self) -> Result<Room<'_>, weir_error> {
        if self.queue.is_closed() {
            return Err(weir_error::ended());
        }
        match self.room.clone().try_acquire_owned() {
            Ok(permit) => Ok(Room(permit, &self.queue)),
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
        let Self(permit, queue) = self;
        let task = Box::pin(async move {
            let _permit = permit;
            work.await;
        });
        // Fails if Main has ended meanwhile. Dropping the future then tells C that Main has ended.
        drop(queue.try_send(task));
    }
}

/// Runs the futures that arrive, until Main has stopped everything else.
pub(crate) async fn run(mut attached: Attached, queue: Receiver<Task>) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            () = attached.closed.wait() => break,
            Ok(task) = queue.recv() => {
                tasks.spawn(task);
            }
            Some(_ended) = tasks.join_next() => {}
        }
    }
    queue.close();
    while let Ok(task) = queue.try_recv() {
        drop(task);
    }
    // Dropping what still runs tells its callbacks that Main has ended.
    tasks.shutdown().await;
}

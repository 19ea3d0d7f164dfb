//! Shared queues, for the embedding program: it puts and takes beside the extensions.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use weir_bus::{Bus, Error, JobReader, MessageId, PeerId, TakenJob};
use weir_names::QueueName;

/// A shared queue. A clone is another reader: each takes one job after the other, and of those who wait for
/// one it goes to the one that has had fewest, and of equals to the one that has waited longest. Where extensions
/// may take, too, a job is at most as large as the largest `message-size` among them.
///
/// Queues are in Main's memory: what waits ends with it.
#[derive(Debug)]
pub struct Queue {
    bus: Arc<Bus>,
    queue: Arc<weir_bus::SharedQueue>,
    reader: Arc<JobReader>,
    waker: Arc<AtomicWaker>,
    /// Whether it has taken, and so counts among those who may end a wait for room.
    takes: bool,
}

/// A job in hand. Dropped before it is [`done`](Self::done), it goes back to its queue, and to another
/// reader; after as many deliveries as the operator allows, to the dead letters.
#[derive(Debug)]
#[must_use = "dropped, it goes back to the queue"]
#[non_exhaustive]
pub struct Job {
    /// The same at each delivery.
    pub id: MessageId,
    /// Who put it: an extension's id, or `main`.
    pub sender: String,
    /// How often it was delivered, this time included.
    pub deliveries: u32,
    /// What was put.
    pub payload: Bytes,
    taken: TakenJob,
}

impl Job {
    /// It is done, and goes to nobody else.
    pub fn done(self) {
        self.taken.done();
    }
}

impl Clone for Queue {
    fn clone(&self) -> Self {
        Self::new(self.bus.clone(), self.queue.clone())
    }
}

impl Queue {
    pub(super) fn new(bus: Arc<Bus>, queue: Arc<weir_bus::SharedQueue>) -> Self {
        let waker = Arc::new(AtomicWaker::new());
        let woken = waker.clone();
        let reader = JobReader::new(u64::MAX, None, move || woken.wake());
        Self { bus, queue, reader, waker, takes: false }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &QueueName {
        self.queue.name()
    }

    /// Bytes of the largest job that can be put, as the configuration is now.
    #[must_use]
    pub fn max_job(&self) -> u64 {
        self.queue.max_payload()
    }

    /// Puts a job at the end. Where there is no room, what the operator set for the queue happens; it
    /// waits for room for at most `[main] request-timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`] if it was refused, [`Error::Timeout`] if it waited in vain,
    /// [`Error::TooLarge`] if the queue could never hold it or nobody takes so much, [`Error::NoProvider`] if the queue is no
    /// longer configured or Main has ended.
    pub async fn put(&self, payload: impl Into<Bytes>) -> Result<MessageId, Error> {
        self.put_before(None, payload.into()).await
    }

    /// [`put`](Self::put), waiting for room for at most so long.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub async fn put_within(&self, timeout: Duration, payload: impl Into<Bytes>) -> Result<MessageId, Error> {
        self.put_before(Some(timeout), payload.into()).await
    }

    /// Waits for a job; none once the queue is empty and no longer configured, or Main has ended.
    /// Dropping the future loses none.
    pub async fn take(&mut self) -> Option<Job> {
        self.join();
        let Self { queue, reader, waker, .. } = &*self;
        let _leaves = Leaves { queue, reader };
        let taken = poll_fn(|context| {
            waker.register(context.waker());
            if let Some(job) = queue.take(reader) {
                return Poll::Ready(Some(job));
            }
            queue.enlist(reader);
            match reader.has_job() {
                true => Poll::Ready(queue.take(reader)),
                false if queue.is_closed() => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await?;
        self.job(taken)
    }

    /// A job, if one waits.
    pub fn try_take(&mut self) -> Option<Job> {
        self.join();
        let taken = self.queue.take(&self.reader)?;
        self.job(taken)
    }

    fn join(&mut self) {
        if !std::mem::replace(&mut self.takes, true) {
            self.queue.join(PeerId::MAIN);
        }
    }

    fn job(&self, taken: TakenJob) -> Option<Job> {
        let job = taken.get()?;
        let sender = self.bus.peer(job.sender).map(|peer| peer.name().to_owned());
        Some(Job {
            id: job.id,
            sender: sender.unwrap_or_default(),
            deliveries: job.deliveries,
            payload: job.payload.clone(),
            taken,
        })
    }

    async fn put_before(&self, timeout: Option<Duration>, payload: Bytes) -> Result<MessageId, Error> {
        self.bus.put(self.bus.main(), &self.queue, payload, (timeout, None))?.put().await
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.takes {
            self.queue.part(PeerId::MAIN);
        }
    }
}

/// Waits for no job any more once it is dropped.
struct Leaves<'q> {
    queue: &'q weir_bus::SharedQueue,
    reader: &'q Arc<JobReader>,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.queue.leave(self.reader);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_bus::{InboxLimits, PeerLimits, QueueSettings};
    use weir_names::QueuePolicy;

    use super::*;
    use crate::client::Client;

    const LIMITS: PeerLimits = PeerLimits {
        message_size: 1024,
        inbox: InboxLimits { messages: 8, bytes: 4096 },
        when_full: weir_names::RequestPolicy::Reject,
        request_timeout: Duration::from_secs(5),
        subscriptions: 256,
    };

    const SETTINGS: QueueSettings = QueueSettings {
        messages: 4,
        bytes: 10_000,
        when_full: QueuePolicy::Reject,
        max_deliveries: 3,
        max_payload: u64::MAX,
    };

    #[tokio::test]
    async fn over_many_readers_the_busiest_gets_at_most_twice_as_many_as_the_laziest() {
        for messages in [4, 64] {
            let bus = Arc::new(Bus::new(LIMITS, Box::new(|_, _| {})));
            let settings =
                QueueSettings { messages, bytes: 1 << 20, when_full: QueuePolicy::Block, ..SETTINGS };
            bus.configure_queues(vec![("q".parse().unwrap(), settings, None)]);
            let queue = Client::new(bus.clone()).queue("q").unwrap();
            let readers: Vec<_> = (0..24)
                .map(|_| {
                    let mut queue = queue.clone();
                    tokio::spawn(async move {
                        let mut own = 0;
                        while let Some(job) = queue.take().await {
                            tokio::task::yield_now().await;
                            job.done();
                            own += 1;
                        }
                        own
                    })
                })
                .collect();
            let write = async |queue: Queue| {
                for _ in 0..1500 {
                    queue.put("").await.unwrap();
                    tokio::task::consume_budget().await;
                }
            };
            futures_util::future::join_all((0..8).map(|_| write(queue.clone()))).await;
            while bus.queue("q").unwrap().stats().counts.done < 8 * 1500 {
                tokio::task::yield_now().await;
            }
            bus.configure_queues(Vec::new());
            let each = futures_util::future::join_all(readers).await;
            let each: Vec<u32> = each.into_iter().map(Result::unwrap).collect();
            assert_eq!(each.iter().sum::<u32>(), 8 * 1500);
            let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
            assert!(most <= &(2 * least), "with {messages}: {each:?}");
        }
    }
}

//! Shared queues of the embedding program.

use std::{sync::Arc, time::Duration};

use async_channel::Receiver;
use bytes::Bytes;
use weir_bus::{Bus, Error, JobReader, MessageId, Parent, TakenJob};
use weir_names::{QueueName, TraceContext};

use super::{Client, PutOptions};
use crate::peers::TracedGuard;

/// A shared queue. Each clone is a reader of its own, with one job at a time.
///
/// A job goes to the waiting reader that has had fewest jobs, then to the one that has waited longest. If extensions
/// take from the queue, the largest `message-size` among them bounds a job. Waiting jobs are in memory and end with
/// Main.
#[derive(Debug)]
pub struct Queue {
    client: Client,
    queue: Arc<weir_bus::SharedQueue>,
    reader: Arc<JobReader>,
    /// The queue rings here when it has handed a job to this reader, or is closed.
    bell: Receiver<()>,
    /// Whether this reader has tried to take before, and so counts as a reader of the queue.
    takes: bool,
}

/// A job in hand. Dropped before [`done`](Self::done), it returns to the queue for another reader, or, after
/// `max-deliveries`, becomes a dead letter.
#[derive(Debug)]
#[must_use = "dropped, it goes back to the queue"]
pub struct Job {
    taken: TakenJob,
    bus: Arc<Bus>,
    _traced: Option<Box<TracedGuard>>,
}

impl Job {
    /// The number of the job, which stays the same at each delivery.
    #[must_use]
    pub fn id(&self) -> MessageId {
        self.taken.get().id
    }

    /// The sending extension's id, a peer's name, or `main`.
    #[must_use]
    pub fn sender(&self) -> Arc<str> {
        self.bus.peer(self.taken.get().sender).map(|peer| peer.shared_name()).unwrap_or_default()
    }

    /// Deliveries so far, this one included.
    #[must_use]
    pub fn deliveries(&self) -> u32 {
        self.taken.get().deliveries
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.taken.get().payload
    }

    /// The span of this delivery, if the job is recorded. Pass it on with what is sent for the job, as in
    /// [`CallOptions::trace`](super::CallOptions::trace).
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.taken.span().map(|span| *span.context())
    }

    /// Finishes the job: it is not delivered again.
    pub fn done(self) {
        self.taken.done();
    }
}

impl Clone for Queue {
    fn clone(&self) -> Self {
        Self::new(self.client.clone(), self.queue.clone())
    }
}

impl Queue {
    pub(super) fn new(client: Client, queue: Arc<weir_bus::SharedQueue>) -> Self {
        let (ringing, bell) = async_channel::bounded(1);
        let (name, max) = (client.peer.shared_name(), client.peer.limits().message_size);
        let ring = move || {
            // A full channel was rung already.
            let _is_rung = ringing.try_send(());
        };
        let reader = JobReader::new(name, max, None, ring);
        Self { client, queue, reader, bell, takes: false }
    }

    /// The name of the queue.
    #[must_use]
    pub fn name(&self) -> &QueueName {
        self.queue.name()
    }

    /// Bytes of the largest job that the queue accepts at present.
    #[must_use]
    pub fn max_job(&self) -> u64 {
        self.queue.max_payload()
    }

    /// Puts a job at the end. A full queue applies its policy; under `block` the future waits up to
    /// `[main] request-timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`] if the queue refused it, [`Error::Timeout`] if no room came in time, [`Error::TooLarge`]
    /// if the queue or its readers cannot hold it, [`Error::NoProvider`] if the queue is no longer configured.
    pub async fn put(&self, payload: impl Into<Bytes>) -> Result<MessageId, Error> {
        self.put_with(payload, PutOptions::default()).await
    }

    /// [`put`](Self::put), waiting at most `timeout` for room.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`], [`Error::Timeout`], [`Error::TooLarge`] or [`Error::NoProvider`], as for
    /// [`put`](Self::put).
    pub async fn put_within(&self, timeout: Duration, payload: impl Into<Bytes>) -> Result<MessageId, Error> {
        self.put_with(payload, PutOptions { timeout: Some(timeout), ..PutOptions::default() }).await
    }

    /// [`put`](Self::put) with a timeout, as part of a trace, or after deliveries elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`], [`Error::Timeout`], [`Error::TooLarge`] or [`Error::NoProvider`], as for
    /// [`put`](Self::put).
    pub async fn put_with(&self, payload: impl Into<Bytes>, options: PutOptions) -> Result<MessageId, Error> {
        let Client { bus, peer, .. } = &self.client;
        let _room = self.client.room()?;
        let term = (options.timeout, self.parent(&options));
        bus.put(peer, &self.queue, payload.into(), term)?.put().await
    }

    fn parent(&self, options: &PutOptions) -> Parent {
        let parent = self.client.parent(options.trace.as_ref());
        Parent { counted: options.deliveries.into(), ..parent }
    }

    /// Puts a job, and waits until a reader has finished it; it waits for room without a deadline. Dropping the future
    /// takes the job back if it still waits. `options.timeout` is ignored.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`], [`Error::TooLarge`] or [`Error::NoProvider`], as for [`put`](Self::put), and the
    /// handler's error `dead` once the job is a dead letter.
    pub async fn put_until_done(&self, payload: impl Into<Bytes>, options: PutOptions) -> Result<(), Error> {
        let Client { bus, peer, .. } = &self.client;
        let _room = self.client.room()?;
        bus.offer(peer, &self.queue, payload.into(), self.parent(&options))?.done().await
    }

    /// Fails if the client is a peer that may not put into the queue.
    ///
    /// # Errors
    ///
    /// [`Error::PermissionDenied`], and [`Error::PeerGone`] after the end of its session.
    pub fn may_put(&self) -> Result<(), Error> {
        self.client.peer.may_put(self.queue.name())
    }

    /// Fails if the client is a peer that may not take from the queue.
    ///
    /// # Errors
    ///
    /// [`Error::PermissionDenied`], and [`Error::PeerGone`] after the end of its session.
    pub fn may_take(&self) -> Result<(), Error> {
        self.client.peer.may_take(self.queue.name())
    }

    /// Waits for a job. None once Main or a peer's session has ended, if a peer may not take, or if the queue is empty
    /// and no longer configured. Dropping the future loses no job.
    pub async fn take(&mut self) -> Option<Job> {
        let Some(session) = self.client.session.clone() else { return self.take_next().await };
        loop {
            // Listens before `take_next` looks at the grant, so that no change is missed.
            let regranted = session.may_take_anew.notified();
            tokio::select! {
                biased;
                job = self.take_next() => return job,
                _ended = session.ended() => return None,
                () = regranted => {}
            }
        }
    }

    async fn take_next(&mut self) -> Option<Job> {
        if let Some(job) = self.try_take() {
            return Some(job);
        }
        let Self { queue, reader, bell, .. } = &*self;
        let _leaves = Leaves { queue, reader };
        loop {
            queue.enlist(reader);
            let has_job = reader.has_job();
            if self.is_refused() || (!has_job && queue.is_closed()) {
                return None;
            }
            if has_job {
                return queue.take(reader).map(|taken| self.job(taken));
            }
            bell.recv().await.ok()?;
        }
    }

    /// Takes a job if one waits. `None` also for a peer that may not take.
    pub fn try_take(&mut self) -> Option<Job> {
        if self.is_refused() {
            return None;
        }
        if !std::mem::replace(&mut self.takes, true) {
            self.queue.join(self.client.peer.id());
        }
        let taken = self.queue.take(&self.reader)?;
        Some(self.job(taken))
    }

    /// Whether the client is a peer that may not take. Main always may.
    #[inline]
    fn is_refused(&self) -> bool {
        self.client.session.is_some() && self.may_take().is_err()
    }

    fn job(&self, taken: TakenJob) -> Job {
        let traced = self.client.session.as_ref().zip(taken.span());
        let traced = traced.map(|(live, span)| TracedGuard::new(live, span));
        Job { taken, bus: self.client.bus.clone(), _traced: traced }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.takes {
            self.queue.part(self.client.peer.id());
        }
    }
}

/// Leaves the line of readers when dropped.
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
    use weir_bus::QueueSettings;
    use weir_names::QueuePolicy;

    use super::*;
    use crate::test_bus;

    #[tokio::test]
    async fn over_many_readers_the_busiest_gets_at_most_twice_as_many_as_the_laziest() {
        for messages in [4, 64] {
            let bus = test_bus::bus();
            let settings = QueueSettings {
                messages,
                bytes: 1 << 20,
                when_full: QueuePolicy::Block,
                max_deliveries: 3,
                max_payload: u64::MAX,
                store: None,
            };
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
            while bus.queue("q").unwrap().status().done < 8 * 1500 {
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

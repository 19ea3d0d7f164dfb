//! Jobs: which peer puts into which queue, how long they wait for room, and the way back from the dead letters.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use weir_names::{Error, QueueName};

use super::{Bus, deadlocks::WaitGuard, requests::PendingCall};
use crate::{
    error::parsed,
    id::MessageId,
    peer::{Peer, Wait, WaitTarget},
    queue::{Fate, Placed, QueueSettings, QueueStats, QueuedJob, SharedQueue, fate},
    room::Room,
    trace::{JobTrace, Parent},
};

/// A job on its way into a queue. Dropping it ends its wait for room.
#[derive(Debug)]
#[must_use = "it does not wait for room unless awaited"]
pub struct Putting {
    bus: Arc<Bus>,
    queue: Arc<SharedQueue>,
    id: MessageId,
    waiting: Option<(Arc<Room>, Instant)>,
    /// The request to the provider that keeps the queue's jobs.
    storing: Option<Box<PendingCall>>,
    _waits: Option<WaitGuard>,
}

/// A job, and the wait until a reader has finished it. Dropping it takes the job back if it still waits.
#[derive(Debug)]
#[must_use = "dropped, it takes the job back"]
pub struct Offering {
    putting: Option<Putting>,
    queue: Arc<SharedQueue>,
    fate: Fate,
}

impl Offering {
    /// Waits until a reader has finished the job.
    ///
    /// Fails if no reader will: it is a dead letter, it was lost, or the queue takes no more jobs.
    pub async fn done(mut self) -> Result<(), Error> {
        if let Some(putting) = self.putting.take() {
            putting.put().await?;
        }
        self.fate.known().await.map_err(|lost| match lost {
            fate::Lost::Dead => Error::handler("dead", "it was delivered too often, and is a dead letter"),
            fate::Lost::Gone if self.queue.is_closed() => self.queue.closed(),
            fate::Lost::Gone => Error::Overloaded(self.queue.name().to_string()),
        })
    }
}

impl Drop for Offering {
    fn drop(&mut self) {
        // First, so that it waits for room no more and cannot get in once it is given up.
        self.putting = None;
        if self.fate.give_up() {
            self.queue.take_back(&self.fate);
        }
    }
}

impl Putting {
    /// Waits for room if it must; returns the id of the job.
    pub async fn put(mut self) -> Result<MessageId, Error> {
        if let Some(storing) = self.storing.take() {
            storing.answer().await?;
            return Ok(self.id);
        }
        let Some((room, _)) = &self.waiting else { return Ok(self.id) };
        let room = room.clone();
        room.settled().await;
        self.settle();
        match room.is_admitted() {
            true => Ok(self.id),
            false if self.queue.is_closed() => Err(self.queue.closed()),
            false if room.is_overdue() => Err(Error::Timeout),
            // The queue now refuses jobs of the kind that waited.
            false => Err(Error::Overloaded(self.queue.name().to_string())),
        }
    }

    fn settle(&mut self) {
        if let Some((room, deadline)) = self.waiting.take() {
            self.bus.deadlines.forget((deadline, self.id));
            self.queue.withdraw(&room);
        }
    }
}

impl Drop for Putting {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Bus {
    /// Sets the queues, each with the queue for its dead jobs. A queue left out takes no more jobs. It is kept for the
    /// jobs it holds, and for its users if it comes back.
    pub fn configure_queues(&self, queues: Vec<(QueueName, QueueSettings, Option<QueueName>)>) {
        self.queues.configure(&queues, &self.on_loss);
    }

    /// Finds a queue for `peer` to put into or take from.
    pub fn open_queue(&self, peer: &Peer, name: &str) -> Result<Arc<SharedQueue>, Error> {
        let name: QueueName = parsed(name)?;
        peer.may_take_or_put(&name)?;
        self.queue(name.as_str())
    }

    /// A queue by its name.
    pub fn queue(&self, name: &str) -> Result<Arc<SharedQueue>, Error> {
        self.queues.find(name)
    }

    /// Puts a job at the end of a queue. If the job must wait for room, it waits at most `timeout`, and not beyond
    /// the parent's deadline.
    pub fn put(
        self: &Arc<Self>,
        sender: &Arc<Peer>,
        queue: &Arc<SharedQueue>,
        payload: Bytes,
        (timeout, parent): (Option<Duration>, Parent),
    ) -> Result<Putting, Error> {
        self.place(sender, queue, payload, (timeout, parent), None)
    }

    /// Puts a job as [`put`](Self::put), and tells when a reader has finished it. The job waits for room without a
    /// deadline. If the queue has a provider that keeps its jobs, only that one may.
    pub fn offer(
        self: &Arc<Self>,
        sender: &Arc<Peer>,
        queue: &Arc<SharedQueue>,
        payload: Bytes,
        parent: Parent,
    ) -> Result<Offering, Error> {
        let (fate, watched) = fate::new();
        let term = (Some(Duration::MAX), Parent { deadline: None, ..parent });
        let putting = self.place(sender, queue, payload, term, Some(watched))?;
        Ok(Offering { putting: Some(putting), queue: queue.clone(), fate })
    }

    fn place(
        self: &Arc<Self>,
        sender: &Arc<Peer>,
        queue: &Arc<SharedQueue>,
        payload: Bytes,
        (timeout, parent): (Option<Duration>, Parent),
        fate: Option<Arc<fate::Watched>>,
    ) -> Result<Putting, Error> {
        sender.may_put(queue.name())?;
        sender.check_size(&payload)?;
        let (id, waits_until_done) = (self.next_message_id(), fate.is_some());
        let (from, at) = (sender.sender(), Self::now());
        let Parent { deadline: until, trace, counted } = parent;
        let deliveries = u32::try_from(counted).unwrap_or(u32::MAX);
        let trace = self.traces.sample(trace);
        let traced = trace.as_deref().map(|origin| JobTrace::new(self.traces.clone(), origin.clone()));
        let job = QueuedJob { id, sender: from, at, payload, deliveries, died_in: None, fate, traced };
        let room = match queue.put(job, |store| self.owners.is_provider(store, sender))? {
            Placed::Waiting(room) => Some(room),
            Placed::In => None,
            Placed::Stored(stored) if waits_until_done => {
                return Err(Error::Invalid(format!(
                    "the jobs of queue `{}` are kept by the provider of `{}`: only that can wait until one is done",
                    queue.name(),
                    stored.0
                )));
            }
            Placed::Stored(stored) => {
                let (store, payload) = *stored;
                let mut target = self.open_granted(store, parsed(queue.name().as_str())?, None, false)?;
                let term = self.term(&target, timeout, Parent { deadline: until, trace, counted: 0 });
                let sent = self.call(sender, &mut target, payload, term, sender.stands_still())?;
                let storing = Some(Box::new(self.watch(sent)));
                let (bus, queue) = (self.clone(), queue.clone());
                return Ok(Putting { bus, queue, id, waiting: None, storing, _waits: None });
            }
        };
        let waiting = room.clone().map(|room| {
            let deadline = self.deadline_within(timeout, until);
            self.deadlines.watch((deadline, id), room.clone());
            (room, deadline)
        });
        // From here on, dropping this withdraws a waiting job.
        let (bus, queue) = (self.clone(), queue.clone());
        let mut putting = Putting { bus, queue, id, waiting, storing: None, _waits: None };
        if let Some(room) = room.filter(|_| sender.stands_still()) {
            let wait = Wait { on: WaitTarget::Queue(putting.queue.clone()), room: Some(room.clone()) };
            match self.wait_for(sender, vec![wait]) {
                Ok(waits) => putting._waits = Some(waits),
                Err(circle) => {
                    putting.settle();
                    // It may have got in just before.
                    if !room.is_admitted() {
                        return Err(circle);
                    }
                }
            }
        }
        sender.stats().sent.fetch_add(1, Ordering::Relaxed);
        Ok(putting)
    }

    /// Puts one dead letter, or all, back where they died; returns how many.
    ///
    /// Fails with the reason why the first of the others could not go back. The rest are back even then.
    pub fn requeue(&self, queue: &Arc<SharedQueue>, id: Option<MessageId>) -> Result<u64, Error> {
        let died = |job: &QueuedJob| job.died_in.is_some() && id.is_none_or(|id| job.id == id);
        let (mut moved, mut kept, mut failed) = (0, Vec::new(), None);
        for job in queue.extract(died) {
            let origin = job.died_in.as_ref().map_or(queue.name(), |died| &died.0);
            let back = QueuedJob { deliveries: 0, died_in: None, ..job.clone() };
            let put = match self.queues.get(origin) {
                Some(origin) => origin.put_back(back),
                None => Err(Error::NoProvider(format!("queue `{origin}` is no longer configured"))),
            };
            match put {
                Ok(()) => moved += 1,
                Err(error) => {
                    failed = failed.or(Some(error));
                    kept.push(job);
                }
            }
        }
        let is_unknown = moved == 0 && kept.is_empty();
        queue.restore(kept);
        match (id, failed) {
            (_, Some(error)) => Err(error),
            (Some(id), None) if is_unknown => {
                Err(Error::Invalid(format!("queue `{}` holds no dead letter {id}", queue.name())))
            }
            _ => Ok(moved),
        }
    }

    /// Every queue, by name.
    pub fn queue_stats(&self) -> Vec<QueueStats> {
        self.queues.stats()
    }
}

//! Jobs: which peer puts into which queue, how long they wait for room, and the way back from the dead letters.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use weir_metrics::moment;
use weir_names::{Error, QueueName};
use weir_reports::QueueStatus;

use super::{Bus, deadlocks::WaitGuard, requests::PendingCall};
use crate::{
    id::{MessageId, parsed},
    peer::{Peer, Wait, WaitTarget},
    queue::{Fate, Placed, QueueSettings, QueuedJob, SharedQueue, fate},
    room::Room,
    trace::{JobTrace, Parent},
};

/// A job on its way into a queue. Dropping it ends the wait for room, or gives up the request to the provider that
/// keeps the queue's jobs.
#[derive(Debug)]
#[must_use = "it does not wait for room unless awaited"]
pub struct Putting {
    id: MessageId,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// The job is in, or was shed by the queue's policy.
    Over,
    Room(Box<BlockedPut>),
    /// The request to the provider that keeps the queue's jobs.
    Store(Box<PendingCall>),
}

/// A job's wait for room. Dropping it withdraws the job, unless the job has got in.
#[derive(Debug)]
struct BlockedPut {
    bus: Arc<Bus>,
    queue: Arc<SharedQueue>,
    id: MessageId,
    room: Arc<Room>,
    deadline: Instant,
    _waits: Option<WaitGuard>,
}

/// A job, and the wait until a reader has finished it. Dropping the wait takes the job back. A reader that has the job
/// may still finish it, but the job is not delivered again.
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
    /// Fails if no reader will finish it: the job found no room, was dropped, or is a dead letter, or the queue takes
    /// no more jobs.
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
        // Dropped first: the job leaves the wait for room, so it cannot get into the queue after it was given up.
        self.putting = None;
        if self.fate.give_up() {
            self.queue.take_back(&self.fate);
        }
    }
}

impl Putting {
    /// Waits until the job has room, or until the provider that keeps the queue's jobs has answered. Returns the job's
    /// id. That provider offers the job to the queue under another id.
    pub async fn put(self) -> Result<MessageId, Error> {
        match self.way {
            Way::Over => {}
            Way::Room(wait) => wait.admitted().await?,
            Way::Store(storing) => drop(storing.answer().await?),
        }
        Ok(self.id)
    }
}

impl BlockedPut {
    async fn admitted(self: Box<Self>) -> Result<(), Error> {
        let (room, queue) = (self.room.clone(), self.queue.clone());
        room.settled().await;
        // Withdraws the job, so that it cannot get in after the checks below.
        drop(self);
        match room.is_admitted() {
            true => Ok(()),
            false if queue.is_closed() => Err(queue.closed()),
            false if room.is_overdue() => Err(Error::Timeout),
            // New settings of the queue turned the waiting job away.
            false => Err(Error::Overloaded(queue.name().to_string())),
        }
    }
}

impl Drop for BlockedPut {
    fn drop(&mut self) {
        self.bus.deadlines.remove_room((self.deadline, self.id));
        self.queue.withdraw(&self.room);
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

    /// Returns the queue with this name, if it is configured or holds jobs.
    pub fn queue(&self, name: &str) -> Result<Arc<SharedQueue>, Error> {
        self.queues.find(name)
    }

    /// Puts a job at the end of a queue, or asks the provider that keeps the queue's jobs to keep it. The wait for room
    /// or for the provider lasts at most `timeout` or else the default, and not beyond the parent's deadline.
    pub fn put(
        self: &Arc<Self>,
        sender: &Arc<Peer>,
        queue: &Arc<SharedQueue>,
        payload: Bytes,
        (timeout, parent): (Option<Duration>, Parent),
    ) -> Result<Putting, Error> {
        self.place(sender, queue, payload, (timeout, parent), None)
    }

    /// Puts a job at the end of a queue, and tells when a reader has finished it. The job waits for room up to 7 days,
    /// whatever the parent's deadline. If a provider keeps the queue's jobs, only that provider may offer.
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
        let (from, put) = (sender.sender(), Self::now());
        let Parent { deadline: until, trace, counted } = parent;
        let deliveries = u32::try_from(counted).unwrap_or(u32::MAX);
        let trace = self.traces.sample(trace);
        let traced = trace.as_deref().map(|origin| JobTrace::new(self.traces.clone(), origin.clone(), put));
        let at = moment(put.into_std());
        let job = QueuedJob { id, sender: from, at, payload, deliveries, died_in: None, fate, traced };
        let way = match queue.put(job, |store| self.owners.is_provider(store, sender))? {
            Placed::In => Way::Over,
            Placed::Waiting(room) => {
                let deadline = self.deadline_within(timeout, until);
                self.deadlines.register_room((deadline, id), room.clone());
                let (bus, queue) = (self.clone(), queue.clone());
                self.block(sender, BlockedPut { bus, queue, id, room, deadline, _waits: None })?
            }
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
                let sent = self.call(sender, &mut target, payload.into(), term, sender.stands_still())?;
                return Ok(Putting { id, way: Way::Store(Box::new(self.watch(sent))) });
            }
        };
        sender.stats().sent.fetch_add(1, Ordering::Relaxed);
        Ok(Putting { id, way })
    }

    /// Makes the wait for room. An extension is blocked meanwhile, so this fails if each reader of the queue is that
    /// extension or waits for it, and the job has not got in yet.
    fn block(&self, sender: &Arc<Peer>, mut wait: BlockedPut) -> Result<Way, Error> {
        if sender.stands_still() {
            let room = wait.room.clone();
            let on = WaitTarget::Queue(wait.queue.clone());
            match self.wait_for(sender, vec![Wait { on, room: Some(room.clone()) }]) {
                Ok(waits) => wait._waits = Some(waits),
                Err(circle) => {
                    drop(wait);
                    // The job may have got in just before it was withdrawn.
                    return if room.is_admitted() { Ok(Way::Over) } else { Err(circle) };
                }
            }
        }
        Ok(Way::Room(Box::new(wait)))
    }

    /// Puts one dead letter, or all, back into the queues where they died; returns how many went back.
    ///
    /// Fails with the first reason if some cannot go back. Those stay in this queue; the others go back even then. Also
    /// fails if this queue holds no dead letter with this `id`.
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

    /// Returns the status of each queue that is configured or holds jobs, by name.
    pub fn queues(&self) -> Vec<QueueStatus> {
        self.queues.status()
    }
}

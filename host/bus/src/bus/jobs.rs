//! Jobs: which peer puts into which queue, how long they wait for room, and the way back from the dead letters.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use weir_names::{Error, QueueName};

use super::{Bus, deadlocks::WaitGuard};
use crate::{
    error::parsed,
    id::{MessageId, PeerId},
    peer::{Peer, Wait, WaitTarget},
    queue::{QueueSettings, QueueStats, QueuedJob, SharedQueue},
    room::Room,
};

/// A job on its way into a queue. Dropping it ends its wait for room.
#[derive(Debug)]
#[must_use = "it does not wait for room unless awaited"]
pub struct Putting {
    bus: Arc<Bus>,
    queue: Arc<SharedQueue>,
    id: MessageId,
    waiting: Option<(Arc<Room>, Instant)>,
    _waits: Option<WaitGuard>,
}

impl Putting {
    /// Waits for room if it must; returns the id of the job.
    pub async fn put(mut self) -> Result<MessageId, Error> {
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
        if let (Err(denied), Err(_)) = (peer.may_put(&name), peer.may_take(&name)) {
            return Err(denied);
        }
        self.queue(name.as_str())
    }

    /// A queue by its name.
    pub fn queue(&self, name: &str) -> Result<Arc<SharedQueue>, Error> {
        self.queues.find(name)
    }

    /// Puts a job at the end of a queue. If the job must wait for room, it waits at most `timeout`, and not beyond
    /// `parent`.
    pub fn put(
        self: &Arc<Self>,
        sender: &Arc<Peer>,
        queue: &Arc<SharedQueue>,
        payload: Bytes,
        (timeout, parent): (Option<Duration>, Option<Instant>),
    ) -> Result<Putting, Error> {
        sender.may_put(queue.name())?;
        sender.check_size(&payload)?;
        let id = self.next_message_id();
        let (sender_id, at) = (sender.id(), Self::now());
        let job = QueuedJob { id, sender: sender_id, at, payload, deliveries: 0, died_in: None };
        let room = queue.put(job)?;
        let waiting = room.clone().map(|room| {
            let deadline = self.deadline_within(timeout, parent);
            self.deadlines.watch((deadline, id), room.clone());
            (room, deadline)
        });
        // From here on, dropping this withdraws a waiting job.
        let mut putting = Putting { bus: self.clone(), queue: queue.clone(), id, waiting, _waits: None };
        // Main's clients wait independently.
        if let Some(room) = room.filter(|_| sender.id() != PeerId::MAIN) {
            let wait = Wait { on: WaitTarget::Queue(queue.clone()), room: Some(room.clone()) };
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

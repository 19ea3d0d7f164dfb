//! The shared queues of one Main: by name, with who may put and take.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use weir_names::QueueName;

use super::{
    Bus, Error, Job, MessageId, Peer, PeerId, Queue, QueueSettings, QueueStats,
    circle::{On, Wait, Waits},
    room::Room,
};

/// Every queue that is configured, or was.
#[derive(Debug, Default)]
pub(super) struct Queues(RwLock<BTreeMap<QueueName, Arc<Queue>>>);

impl Queues {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<QueueName, Arc<Queue>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job on its way into a queue. Dropped, it waits no longer.
#[derive(Debug)]
#[must_use = "it does not wait for room unless awaited"]
pub struct Putting {
    bus: Arc<Bus>,
    queue: Arc<Queue>,
    id: MessageId,
    waiting: Option<(Arc<Room>, Instant)>,
    _waits: Option<Waits>,
}

impl Putting {
    /// Waits for room where it must; the id of the job.
    pub async fn put(mut self) -> Result<MessageId, Error> {
        let Some((room, _)) = &self.waiting else { return Ok(self.id) };
        let room = room.clone();
        room.settled().await;
        self.settle();
        match room.is_admitted() {
            true => Ok(self.id),
            false if self.queue.is_closed() => Err(closed(&self.queue)),
            false if room.is_overdue() => Err(Error::Timeout),
            // What it waited for is refused from now on.
            false => Err(Error::Overloaded(self.queue.name().to_string())),
        }
    }

    fn settle(&mut self) {
        if let Some((room, deadline)) = self.waiting.take() {
            self.bus.pending.forget((deadline, self.id));
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
    /// From now on these are the queues. One that is no longer among them takes no more jobs; it is kept,
    /// for what it holds, and for those who know it if it comes back.
    pub fn configure_queues(&self, queues: Vec<(QueueName, QueueSettings, Option<QueueName>)>) {
        let mut table = self.queues.0.write().unwrap_or_else(PoisonError::into_inner);
        for (name, settings, _) in &queues {
            let new = || Queue::new(name.clone(), settings.clone(), self.on_loss.clone());
            table.entry(name.clone()).or_insert_with(new);
        }
        for (name, settings, dead_letter) in &queues {
            let dead_letter = dead_letter.as_ref().and_then(|name| table.get(name));
            let dead_letter = dead_letter.map_or_else(Weak::new, Arc::downgrade);
            if let Some(queue) = table.get(name) {
                queue.set(settings.clone(), dead_letter);
            }
        }
        // When all are as they are to be: one may be where another's dead jobs go.
        for (name, ..) in &queues {
            if let Some(queue) = table.get(name) {
                queue.bury_unfit();
            }
        }
        let is_configured = |name: &QueueName| queues.iter().any(|(configured, ..)| configured == name);
        for (_, queue) in table.iter().filter(|(name, _)| !is_configured(name)) {
            queue.close();
        }
    }

    /// A queue by its name, for `peer` to put into or to take from.
    pub fn open_queue(&self, peer: &Peer, name: &str) -> Result<Arc<Queue>, Error> {
        let name: QueueName = super::peer::parsed(name)?;
        if let (Err(denied), Err(_)) = (peer.may_put(&name), peer.may_take(&name)) {
            return Err(denied);
        }
        self.queue(name.as_str())
    }

    /// A queue by its name.
    pub fn queue(&self, name: &str) -> Result<Arc<Queue>, Error> {
        let found = self.queues.read().get(name).filter(|queue| queue.is_there()).cloned();
        found.ok_or_else(|| Error::Invalid(format!("no queue `{name}` is configured")))
    }

    /// Puts a job at the end of a queue. If that has it wait, it waits at most so long, and not beyond
    /// `parent`.
    pub fn put(
        self: &Arc<Self>,
        sender: &Arc<Peer>,
        queue: &Arc<Queue>,
        payload: Bytes,
        (timeout, parent): (Option<Duration>, Option<Instant>),
    ) -> Result<Putting, Error> {
        sender.may_put(queue.name())?;
        sender.check_size(&payload)?;
        let id = self.next_message_id();
        let (sender_id, at) = (sender.id(), Self::now());
        let job = Job { id, sender: sender_id, at, payload, deliveries: 0, died_in: None };
        let room = queue.put(job)?;
        let waiting = room.clone().map(|room| {
            let deadline = self.deadline_within(timeout, parent);
            self.pending.watch((deadline, id), room.clone());
            (room, deadline)
        });
        // From here on what waits is withdrawn if this is dropped.
        let mut putting = Putting { bus: self.clone(), queue: queue.clone(), id, waiting, _waits: None };
        // Main's clients wait each for itself.
        if let Some(room) = room.filter(|_| sender.id() != PeerId::MAIN) {
            let wait = Wait { on: On::Queue(queue.clone()), room: Some(room.clone()) };
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

    /// Puts dead letters back where they died: one, or all; how many those were.
    ///
    /// Fails with why the first of those stays that cannot go back; all that can are back then.
    pub fn requeue(&self, queue: &Arc<Queue>, id: Option<MessageId>) -> Result<u64, Error> {
        let died = |job: &Job| job.died_in.is_some() && id.is_none_or(|id| job.id == id);
        let (mut moved, mut kept, mut failed) = (0, Vec::new(), None);
        for job in queue.extract(died) {
            let origin = job.died_in.as_ref().map_or(queue.name(), |(origin, _)| origin);
            let back = Job { deliveries: 0, died_in: None, ..job.clone() };
            let put = match self.queues.read().get(origin).cloned() {
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
        let all: Vec<_> = self.queues.read().values().filter(|queue| queue.is_there()).cloned().collect();
        all.iter().map(|queue| queue.stats()).collect()
    }

    pub(super) fn close_queues(&self) {
        for queue in self.queues.read().values() {
            queue.close();
        }
    }
}

pub(super) fn closed(queue: &Queue) -> Error {
    Error::NoProvider(format!(
        "queue `{}` takes no jobs any more: it is no longer configured, or Main ends",
        queue.name()
    ))
}

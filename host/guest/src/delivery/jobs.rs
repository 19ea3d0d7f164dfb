//! The queues that an instance has opened, those it takes from, and its jobs in hand.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use weir_bus::{Error, JobReader, MessageId, Parent, Peer, PeerId, SharedQueue, SpanOrigin, TakenJob};

use super::{
    clock::Clock,
    held::{Handling, Held},
};
use crate::abi;

/// The queues that an instance has opened, and its jobs in hand.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// The opened queues. The index is the guest's number of the queue.
    opened: Vec<Arc<SharedQueue>>,
    queues: Arc<TakenQueues>,
    /// Whether the guest has ever asked for jobs of a queue.
    pub(crate) takes: bool,
    held: Arc<Held>,
    /// The jobs that came one by one, which the next receive finishes. Each has the place of its queue in the list.
    one_by_one: Vec<(usize, MessageId)>,
}

/// The queues that an instance takes from, shared with its waits for a message.
#[derive(Debug)]
pub(crate) struct TakenQueues {
    peer: Arc<Peer>,
    list: Mutex<Vec<TakenQueue>>,
    /// The place in the list from which the next look begins.
    turn: AtomicUsize,
    /// How many more jobs may be in hand, besides those that come one by one.
    left: Arc<AtomicUsize>,
    /// Whether a wait has ended with a job handed over.
    has_handed: AtomicBool,
}

/// A queue that an instance takes from, and how many jobs it still wants of it.
#[derive(Debug)]
struct TakenQueue {
    number: u32,
    queue: Arc<SharedQueue>,
    reader: Arc<JobReader>,
    how: abi::Taking,
    /// Under `one-by-one`, whether the last receive brought a job of this queue.
    has_one: bool,
}

impl Jobs {
    /// Makes the jobs of an instance. At most `max` can be in hand, besides those that come one by one.
    pub(crate) fn new(peer: Arc<Peer>, max: usize, held: Arc<Held>) -> Self {
        let (list, turn, left) = (Mutex::default(), AtomicUsize::new(0), Arc::new(AtomicUsize::new(max)));
        let has_handed = AtomicBool::new(false);
        Self {
            opened: Vec::new(),
            queues: Arc::new(TakenQueues { peer, list, turn, left, has_handed }),
            takes: false,
            held,
            one_by_one: Vec::new(),
        }
    }

    pub(crate) fn taken_queues(&self) -> &Arc<TakenQueues> {
        &self.queues
    }

    /// Returns the guest's number of a queue. A queue that was opened before keeps its number. Fails if `max` others
    /// are open.
    pub(crate) fn open(&mut self, queue: Arc<SharedQueue>, max: u64) -> Result<u32, Error> {
        let known = self.opened.iter().position(|known| Arc::ptr_eq(known, &queue));
        let place = match known {
            Some(place) => place,
            None => {
                let (used, allowed) = (self.opened.len() as u64 + 1, max);
                if used > allowed {
                    return Err(Error::LimitExceeded { name: "open-operations".into(), used, allowed });
                }
                self.opened.push(queue);
                self.opened.len() - 1
            }
        };
        Ok(u32::try_from(place).unwrap_or(u32::MAX))
    }

    pub(crate) fn queue(&self, number: u32) -> Result<&Arc<SharedQueue>, Error> {
        usize::try_from(number)
            .ok()
            .and_then(|place| self.opened.get(place))
            .ok_or_else(|| Error::Invalid(format!("queue {number} was never opened")))
    }

    /// Sets how the guest takes from an opened queue. Fails if the queue is not opened or not granted, or for more than
    /// `max` jobs.
    pub(crate) fn set_taking(&mut self, number: u32, how: abi::Taking, max: u64) -> Result<(), Error> {
        let queue = self.queue(number)?.clone();
        let peer = &self.queues.peer;
        peer.may_take(queue.name())?;
        if let abi::Taking::Next(jobs) = how
            && u64::from(jobs) > max
        {
            return Err(Error::LimitExceeded { name: "in-flight".into(), used: jobs.into(), allowed: max });
        }
        let is_counted = how != abi::Taking::OneByOne;
        let mut list = self.queues.list.lock();
        match list.iter_mut().find(|taking| taking.number == number) {
            Some(taking) => {
                taking.how = how;
                taking.reader.count(is_counted);
                if how == abi::Taking::Next(0) {
                    taking.queue.leave(&taking.reader);
                }
            }
            None => {
                let inbox = peer.inbox().clone();
                queue.join(peer.id());
                let left = self.queues.left.clone();
                let reader =
                    JobReader::new(peer.shared_name(), peer.limits().message_size, Some(left), move || {
                        inbox.wake()
                    });
                reader.count(is_counted);
                list.push(TakenQueue { number, queue, reader, how, has_one: false });
            }
        }
        self.takes = true;
        Ok(())
    }

    /// Finishes the jobs that came one by one, because a new receive begins.
    pub(crate) fn begin_receive(&mut self) {
        if self.one_by_one.is_empty() {
            return;
        }
        for (place, id) in self.one_by_one.drain(..) {
            if let Some(taking) = self.queues.list.lock().get_mut(place) {
                taking.has_one = false;
            }
            if let Some(job) = self.held.remove_job(id) {
                job.done();
            }
        }
    }

    /// Gives to others the jobs that were handed over and not delivered, because a receive ends.
    pub(crate) fn end_receive(&self) {
        if self.queues.has_handed.load(Ordering::Relaxed) {
            self.queues.has_handed.store(false, Ordering::Relaxed);
            for taking in self.queues.list.lock().iter().filter(|taking| taking.reader.has_job()) {
                taking.queue.leave(&taking.reader);
            }
        }
    }

    /// Takes a job for the guest, without waiting. Queues take turns.
    pub(super) fn next(&mut self, clock: &Clock<'_>) -> Option<(abi::Job, PeerId)> {
        if !self.queues.is_open() {
            return None;
        }
        let (place, number, job, is_one) = self.queues.next()?;
        let (one, now) = (job.get(), clock.now());
        let delivered = abi::Job {
            id: one.id.0,
            queue: number,
            sender: one.sender.0,
            deliveries: one.deliveries,
            waited_us: abi::microseconds(now.saturating_sub(one.at)),
            payload: one.payload.clone(),
        };
        let (id, sender) = (one.id, one.sender);
        self.queues.peer.stats().received.fetch_add(1, Ordering::Relaxed);
        if is_one {
            self.one_by_one.push((place, id));
        }
        self.held.hold_job(now, id, job);
        Some((delivered, sender))
    }

    /// Returns the parent of a message that is sent for this job. A job has no deadline.
    pub(crate) fn parent(&self, id: MessageId) -> Option<Parent> {
        let context = |job: &TakenJob| job.span().map(|span| SpanOrigin::within(span.context()));
        let trace = self.held.job(Some(id), context)?;
        Some(Parent { trace, ..Parent::default() })
    }

    pub(crate) fn done(&mut self, id: MessageId) -> Result<(), Error> {
        self.remove(id).map(TakenJob::done)
    }

    /// Finishes those of these jobs that are in hand. Fails afterwards if some are not, or are named twice.
    pub(crate) fn done_all(&mut self, ids: &[MessageId]) -> Result<(), Error> {
        let (mut done, mut first_other) = (Vec::with_capacity(ids.len()), None);
        for id in ids {
            match self.held.remove_job(*id) {
                Some(job) => done.push(job),
                None => _ = first_other.get_or_insert(id),
            }
        }
        let others = ids.len() - done.len();
        TakenJob::all_done(done);
        match first_other {
            None => Ok(()),
            Some(first) => Err(Error::Invalid(format!(
                "{others} of {} jobs are not in hand, or were named twice: the first is {first}",
                ids.len()
            ))),
        }
    }

    /// Drops a job in hand, which puts it back into its queue, or makes it a dead letter if it was delivered too often.
    pub(crate) fn give_back(&mut self, id: MessageId) -> Result<(), Error> {
        self.remove(id).map(drop)
    }

    /// Returns the job in hand with this id or, without an id, the one with the lowest id.
    pub(crate) fn handling(&self, id: Option<MessageId>) -> Option<Handling> {
        self.held.job(id, Handling::of_job)
    }

    /// Gives all jobs of the instance back to their queues, and leaves these queues, because the instance has ended.
    pub(crate) fn end(&mut self) {
        for taking in self.queues.list.lock().drain(..) {
            taking.queue.leave(&taking.reader);
            taking.queue.part(self.queues.peer.id());
        }
        self.one_by_one.clear();
        // The last job goes back first, because each goes to the front of its queue.
        while let Some(job) = self.held.pop_last_job() {
            drop(job);
        }
    }

    fn remove(&mut self, id: MessageId) -> Result<TakenJob, Error> {
        self.held.remove_job(id).ok_or_else(|| Error::Invalid(format!("job {id} is not in hand")))
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.end();
    }
}

impl TakenQueues {
    /// Waits until a receive would find a message or job, or a stop.
    pub(crate) async fn readable(&self) {
        if self.list.lock().is_empty() {
            return self.peer.readable().await;
        }
        let _listed = Listed(self);
        self.peer.readable_or(|| self.is_open() && self.enlist()).await;
    }

    /// Whether the instance may take jobs: only while it gets the peer's requests and was not told to stop.
    fn is_open(&self) -> bool {
        self.peer.is_serving()
    }

    /// Joins the line of every queue that the instance wants a job from. Returns whether it was handed a job. That
    /// includes a queue of which the instance has a job one by one, because the next receive finishes that job.
    fn enlist(&self) -> bool {
        let mut has_job = false;
        for taking in self.list.lock().iter().filter(|taking| taking.how != abi::Taking::Next(0)) {
            taking.queue.enlist(&taking.reader);
            has_job |= taking.reader.has_job();
        }
        has_job
    }

    /// Takes a job. Returns it with the place and number of its queue, and whether it came one by one.
    fn next(&self) -> Option<(usize, u32, TakenJob, bool)> {
        let mut list = self.list.lock();
        let (turn, all) = (self.turn.load(Ordering::Relaxed), list.len());
        for place in (0..all).map(|next| (turn + next) % all) {
            let Some(taking) = list.get_mut(place).filter(|taking| taking.wants_one()) else { continue };
            let Some(job) = taking.queue.take(&taking.reader) else { continue };
            let is_one = match &mut taking.how {
                abi::Taking::OneByOne => {
                    taking.has_one = true;
                    true
                }
                abi::Taking::Next(jobs) => {
                    *jobs -= 1;
                    false
                }
            };
            self.turn.store(place + 1, Ordering::Relaxed);
            return Some((place, taking.number, job, is_one));
        }
        None
    }
}

impl TakenQueue {
    fn wants_one(&self) -> bool {
        match self.how {
            abi::Taking::OneByOne => !self.has_one,
            abi::Taking::Next(jobs) => jobs > 0,
        }
    }
}

/// Keeps an instance in the lines of its queues until dropped.
struct Listed<'t>(&'t TakenQueues);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        for taking in self.0.list.lock().iter() {
            if taking.queue.delist(&taking.reader) {
                self.0.has_handed.store(true, Ordering::Relaxed);
            }
        }
    }
}

//! The events, jobs and calls that an instance has in hand, and since when. `handler-timeout` limits how long that may last.
//!
//! The delivery shares them with the task that runs the instance, which cannot reach the Store while the guest runs.
//! Times are [`moment`](weir_metrics::moment)s minus the time for which Main stood still.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use weir_bus::{MessageId, OperationId, PeerId, Published, QueuedJob, TakenJob};

/// The events, jobs and call in hand, shared by the delivery and the task of the instance.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Whether anything is in hand. Read whenever the instance waits.
    is_any: AtomicBool,
    /// Nanoseconds for which Main stood still.
    paused: AtomicU64,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// The first event of the last receive and when it came, until the guest looks for messages again.
    event: Option<(u64, Arc<Published>)>,
    /// The jobs in hand, each with the time when it came.
    jobs: BTreeMap<MessageId, (u64, TakenJob)>,
    /// The request for which the host calls a function, and since when.
    call: Option<(u64, HeldCall)>,
}

/// The times since when something is in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Since {
    pub(super) oldest: u64,
    /// The earliest time that is later than the time asked about, or the earliest of all if no time was asked about.
    pub(super) oldest_after: Option<u64>,
}

impl Held {
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// Returns a moment minus the time for which Main stood still.
    pub(super) fn time(&self, moment: u64) -> u64 {
        moment.saturating_sub(self.paused.load(Ordering::Relaxed))
    }

    pub(super) fn hold_event(&self, moment: u64, published: &Arc<Published>) {
        self.change(|list| list.event = Some((self.time(moment), published.clone())));
    }

    /// Takes the event out of hand, because a guest that looks for messages is taken to be done with it.
    pub(crate) fn end_event(&self) {
        if self.is_any() {
            drop(self.change(|list| list.event.take()));
        }
    }

    pub(super) fn hold_call(&self, moment: u64, request: HeldCall) {
        self.change(|list| list.call = Some((self.time(moment), request)));
    }

    /// Takes the call out of hand, because its function has returned.
    pub(super) fn end_call(&self) {
        self.change(|list| list.call = None);
    }

    pub(super) fn hold_job(&self, moment: u64, id: MessageId, job: TakenJob) {
        // Each job has a number of its own, so the insert replaces none.
        self.change(|list| _ = list.jobs.insert(id, (self.time(moment), job)));
    }

    pub(super) fn remove_job(&self, id: MessageId) -> Option<TakenJob> {
        self.change(|list| list.jobs.remove(&id)).map(|(_, job)| job)
    }

    pub(super) fn pop_last_job(&self) -> Option<TakenJob> {
        self.change(|list| list.jobs.pop_last()).map(|(_, (_, job))| job)
    }

    pub(super) fn has_jobs(&self) -> bool {
        !self.list.lock().jobs.is_empty()
    }

    /// Returns what `look` returns for the job in hand with this id or, without an id, for the one with the lowest id.
    /// Returns none if there is no such job.
    pub(super) fn job<T>(&self, id: Option<MessageId>, look: impl FnOnce(&TakenJob) -> T) -> Option<T> {
        let list = self.list.lock();
        let (_, job) = match id {
            Some(id) => list.jobs.get(&id)?,
            None => list.jobs.values().next()?,
        };
        Some(look(job))
    }

    /// Returns the event, job or call that has been in hand the longest. With `after`, only what came later counts.
    pub(super) fn oldest(&self, after: Option<u64>) -> Option<Handling> {
        let list = self.list.lock();
        let is_asked = |since: u64| after.is_none_or(|after| since > after);
        // An instance whose functions are called has neither events nor jobs.
        if let Some((_, request)) = list.call.as_ref().filter(|(since, _)| is_asked(*since)) {
            let HeldCall { message, sender, operation } = request;
            return Some(Handling::of_request(*message, *sender, operation));
        }
        let event = list.event.as_ref().filter(|(since, _)| is_asked(*since));
        let jobs = list.jobs.values().filter(|(since, _)| is_asked(*since));
        match (event, jobs.min_by_key(|(since, _)| *since)) {
            (Some((event, _)), Some((since, job))) if since < event => Some(Handling::of_job(job)),
            (Some((_, published)), _) => Some(Handling::of_event(published)),
            (None, job) => job.map(|(_, job)| Handling::of_job(job)),
        }
    }

    /// Returns since when something is in hand, or none if nothing is.
    pub(super) fn since(&self, after: Option<u64>) -> Option<Since> {
        let list = self.list.lock();
        let oldest_after = list.times().filter(|since| after.is_none_or(|after| *since > after)).min();
        list.times().min().map(|oldest| Since { oldest, oldest_after })
    }

    /// Notes that Main stood still for these nanoseconds, until this moment. Messages that came into hand meanwhile
    /// count from this moment.
    pub(super) fn pause(&self, nanoseconds: u64, moment: u64) {
        let mut list = self.list.lock();
        self.paused.fetch_add(nanoseconds, Ordering::Relaxed);
        let now = self.time(moment);
        let List { event, jobs, call } = &mut *list;
        let event = event.iter_mut().map(|(since, _)| since).chain(call.iter_mut().map(|(since, _)| since));
        event.chain(jobs.values_mut().map(|(since, _)| since)).for_each(|since| *since = now.min(*since));
    }

    /// Changes the list under its lock. A job that `change` takes out is returned and not dropped here, because a
    /// dropped job goes back to its queue.
    fn change<T>(&self, change: impl FnOnce(&mut List) -> T) -> T {
        let mut list = self.list.lock();
        let changed = change(&mut list);
        let is_any = list.event.is_some() || list.call.is_some() || !list.jobs.is_empty();
        self.is_any.store(is_any, Ordering::Relaxed);
        changed
    }
}

/// A request for which the host calls a function.
#[derive(Debug)]
pub(super) struct HeldCall {
    pub(super) message: MessageId,
    pub(super) sender: PeerId,
    pub(super) operation: OperationId,
}

impl List {
    fn times(&self) -> impl Iterator<Item = u64> {
        let event =
            self.event.iter().map(|(since, _)| *since).chain(self.call.iter().map(|(since, _)| *since));
        event.chain(self.jobs.values().map(|(since, _)| *since))
    }
}

/// The message that an instance is handling, or was handling when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handling {
    /// The id of the request, reply or job. An event has none.
    pub message: Option<MessageId>,
    /// The event's place in its topic. None for other messages, and for an event that was published to this extension
    /// alone.
    pub sequence: Option<u64>,
    /// The peer that sent the message.
    pub sender: PeerId,
    /// What is handled, for people to read: contract and operation, `event` and topic, `queue` and name, or `response`.
    pub operation: String,
}

impl Handling {
    pub(super) fn of_request(message: MessageId, sender: PeerId, operation: &OperationId) -> Self {
        let OperationId { contract, name } = operation;
        Self { message: Some(message), sequence: None, sender, operation: format!("{contract} {name}") }
    }

    pub(super) fn of_event(published: &Published) -> Self {
        // An event that was published to this extension alone has no place in its topic.
        let sequence = (published.sequence > 0).then_some(published.sequence);
        let operation = format!("event {}", published.topic);
        Self { message: None, sequence, sender: published.sender, operation }
    }

    pub(super) fn of_job(job: &TakenJob) -> Self {
        let operation = format!("queue {}", job.queue().name());
        let QueuedJob { id, sender, .. } = *job.get();
        Self { message: Some(id), sequence: None, sender, operation }
    }
}

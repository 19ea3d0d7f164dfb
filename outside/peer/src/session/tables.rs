//! What is under way in a session. Plain values, and no I/O.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use weir_names::{Error, TraceContext};

use super::mailbox::{Mailbox, until};
use crate::Event;

/// What is under way in a session.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// False in the empty tables that stay in place once the session has ended.
    is_open: bool,
    last_id: u32,
    /// What waits for an answer, by the id that this session gave it.
    pub(super) pending: HashMap<u32, Pending>,
    /// Events that wait, by Main's number of their subscription.
    pub(super) subscriptions: HashMap<u32, Arc<Mailbox<Event>>>,
    /// Requests that wait, by contract.
    pub(super) served: HashMap<Arc<str>, Arc<Mailbox<WaitingRequest>>>,
    /// Requests that wait or are in hand, by Main's number.
    pub(super) in_hand: HashMap<u32, Arc<GivenUp>>,
    /// The queues that are open, by name, each with the number of its handles.
    pub(super) queues: HashMap<Arc<str>, (Arc<QueueState>, usize)>,
    /// Jobs that Main may still send.
    pub(crate) jobs_credit: u64,
    /// Events that Main may still send.
    pub(super) events_credit: u32,
    /// Events that were read since the last credit.
    events_read: u32,
    /// The span of the request or job that comes next.
    pub(super) span: Option<TraceContext>,
}

/// What waits for an answer.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A call, a publish or a put.
    Answer(oneshot::Sender<Result<Bytes, Error>>),
    /// A subscription, with the mailbox of its events.
    Subscribe(Arc<Mailbox<Event>>, oneshot::Sender<Result<u32, Error>>),
    /// An offer to serve a contract, with the mailbox of its requests.
    Serve(Arc<str>, Arc<Mailbox<WaitingRequest>>, oneshot::Sender<Result<(), Error>>),
    /// A credit for one job of a queue, which Main accepts or refuses.
    Take(Arc<QueueState>),
}

/// A request as it waits.
#[derive(Debug)]
pub(crate) struct WaitingRequest {
    pub(crate) number: u32,
    pub(crate) message: u64,
    pub(crate) deadline: Instant,
    pub(crate) sender: String,
    pub(crate) operation: String,
    pub(crate) payload: Bytes,
    pub(crate) span: Option<TraceContext>,
    pub(crate) given_up: Arc<GivenUp>,
}

/// A job as it waits.
#[derive(Debug)]
pub(crate) struct WaitingJob {
    pub(crate) number: u32,
    pub(crate) message: u64,
    pub(crate) deliveries: u32,
    pub(crate) sender: String,
    pub(crate) payload: Bytes,
    pub(crate) span: Option<TraceContext>,
}

/// A queue that the session takes from.
#[derive(Debug)]
pub(crate) struct QueueState {
    /// Jobs, and refusals of credit.
    pub(crate) jobs: Mailbox<Result<WaitingJob, Error>>,
    counts: Mutex<Counts>,
}

impl QueueState {
    /// Takes off one credit: a job has come for it, or Main has refused it.
    pub(super) fn use_credit(&self) {
        let mut counts = self.counts();
        counts.credit = counts.credit.saturating_sub(1);
    }

    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Jobs that may still come, and takers that wait.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) credit: usize,
    pub(crate) takers: usize,
}

/// Whether the caller of a request waits no more.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    is_set: AtomicBool,
    set: Notify,
}

impl GivenUp {
    pub(crate) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.set.notify_waiters();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    pub(crate) async fn wait(&self) {
        until(&self.set, || self.is_set().then_some(())).await;
    }
}

impl Tables {
    pub(super) fn new(events: u32) -> Self {
        Self { is_open: true, events_credit: events, ..Self::default() }
    }

    /// Notes what waits for an answer, and returns its id. Fails beyond `in_flight`, because Main would refuse more,
    /// and once the session has ended.
    pub(super) fn register(&mut self, pending: Pending, in_flight: u32) -> Result<u32, Error> {
        if !self.is_open {
            return Err(Error::PeerGone);
        }
        let used = self.pending.len() as u64 + 1;
        if used > in_flight.into() {
            let name = "in-flight".to_owned();
            return Err(Error::LimitExceeded { name, used, allowed: in_flight.into() });
        }
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.pending.contains_key(&self.last_id) {
                break;
            }
        }
        self.pending.insert(self.last_id, pending);
        Ok(self.last_id)
    }

    /// Adds a subscription, with the mailbox of its events. False if there is one of that number. Once the session has
    /// ended, ends the mailbox instead.
    pub(super) fn add_subscription(&mut self, number: u32, events: Arc<Mailbox<Event>>) -> bool {
        if !self.is_open {
            events.end();
            return true;
        }
        match self.subscriptions.entry(number) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(events);
                true
            }
        }
    }

    /// Adds a contract that the session serves, with the mailbox of its requests. Once the session has ended, ends the
    /// mailbox instead.
    pub(super) fn add_contract(&mut self, contract: Arc<str>, requests: Arc<Mailbox<WaitingRequest>>) {
        if self.is_open {
            self.served.insert(contract, requests);
        } else {
            requests.end();
        }
    }

    /// Takes a request off those in hand, because it is answered. False if it is none of them: its caller has given it
    /// up, or the session has ended.
    pub(crate) fn release(&mut self, request: u32) -> bool {
        self.in_hand.remove(&request).is_some()
    }

    /// Counts `events` as read. Returns the credit to send to Main once it is at least half of `most`.
    pub(super) fn renew_credit(&mut self, events: u32, most: u32) -> Option<u32> {
        self.events_read = self.events_read.saturating_add(events);
        if self.events_read < most.div_ceil(2) {
            return None;
        }
        let read = std::mem::take(&mut self.events_read);
        self.events_credit = self.events_credit.saturating_add(read);
        Some(read)
    }

    /// Tells everything that waits that nothing more comes. Events that have come can still be read; requests and jobs
    /// that wait are dropped.
    pub(super) fn wake_all(self) {
        self.subscriptions.values().for_each(|events| events.end());
        self.served.values().for_each(|requests| drop(requests.close()));
        self.in_hand.values().for_each(|request| request.set());
        self.queues.values().for_each(|(queue, _)| drop(queue.jobs.close()));
        // Dropped with their senders, calls and the like fail with `peer-gone`.
        drop(self.pending);
    }

    /// Main sends no jobs for the credit of a queue. Drops that credit, and tells the takers that wait.
    pub(super) fn drop_jobs_credit(&mut self, name: &str) {
        let Some((queue, _)) = self.queues.get(name) else { return };
        let mut counts = queue.counts();
        self.jobs_credit = self.jobs_credit.saturating_sub(counts.credit as u64);
        counts.credit = 0;
        for _ in queue.jobs.len()..counts.takers {
            let error = Error::NoProvider(format!("queue `{name}` gives this peer no more jobs"));
            drop(queue.jobs.push(Err(error)));
        }
    }

    /// Opens a queue for one more handle. All handles of a queue share its state.
    pub(crate) fn open_queue(&mut self, name: &str) -> Arc<QueueState> {
        if let Some((queue, handles)) = self.queues.get_mut(name) {
            *handles += 1;
            return queue.clone();
        }
        let queue = Arc::new(QueueState { jobs: Mailbox::new(), counts: Mutex::default() });
        if self.is_open {
            self.queues.insert(name.into(), (queue.clone(), 1));
        } else {
            queue.jobs.end();
        }
        queue
    }

    /// Closes one handle of a queue. With the last one, returns the jobs that wait, which the caller gives back.
    pub(crate) fn close_queue(&mut self, name: &str) -> Vec<WaitingJob> {
        let Some((queue, handles)) = self.queues.get_mut(name) else { return Vec::new() };
        *handles -= 1;
        if *handles > 0 {
            return Vec::new();
        }
        let jobs = queue.jobs.close();
        self.queues.remove(name);
        jobs.into_iter().flatten().collect()
    }
}

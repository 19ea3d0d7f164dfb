//! Everything that the queue's lock guards: its settings, waiting jobs, jobs in hand, and the line of readers.
//!
//! Decides what has room and which reader gets a job. Wakes nobody: it returns the readers to wake.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use weir_metrics::{PerSecond, moment};
use weir_names::{ContractName, QueueName, QueuePolicy};

use super::{
    fate::Watched,
    reader::{HandedJob, JobReader},
};
use crate::{
    channel::Channel,
    id::{MessageId, PeerId},
    message::ENVELOPE_BYTES,
    room::Ticket,
    trace::JobTrace,
};

#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) settings: QueueSettings,
    pub(super) is_closed: bool,
    pub(super) waiting: Channel<QueuedJob>,
    pub(super) blocked: VecDeque<(Ticket, QueuedJob)>,
    /// Waiting readers: fewest jobs first, then longest wait first.
    pub(super) readers: VecDeque<Arc<JobReader>>,
    /// The most jobs that one reader has had.
    pub(super) most: u64,
    /// The peers that take jobs, each with its number of readers.
    pub(super) takers: BTreeMap<PeerId, u32>,
    pub(super) in_hand: usize,
    pub(super) in_hand_bytes: u64,
    /// Bytes of the jobs that wait and those in hand.
    pub(super) bytes: u64,
    pub(super) counts: JobCounts,
    /// How many dead letters were dropped because there is no queue for them.
    pub(super) unburied: u64,
    pub(super) put_rate: PerSecond,
    pub(super) done_rate: PerSecond,
}

/// What happened to the jobs of a queue so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobCounts {
    /// Jobs that got in.
    pub(crate) put: u64,
    /// Deliveries to a reader. A job that comes back counts again.
    pub(crate) delivered: u64,
    /// Jobs that a reader has finished.
    pub(crate) done: u64,
    /// Deliveries after which the job came back unfinished.
    pub(crate) returned: u64,
    /// Jobs that died: delivered too often, or too large for all readers.
    pub(crate) dead: u64,
    /// Jobs dropped for want of room, and dead letters that came when the queue was closed.
    pub(crate) shed: u64,
    /// Jobs that were refused for want of room, or waited for room until the sender gave up or new settings turned them
    /// away.
    pub(crate) refused: u64,
}

impl QueueState {
    pub(super) fn new(settings: QueueSettings) -> Self {
        Self {
            settings,
            is_closed: false,
            waiting: Channel::default(),
            blocked: VecDeque::new(),
            readers: VecDeque::new(),
            most: 0,
            takers: BTreeMap::new(),
            in_hand: 0,
            in_hand_bytes: 0,
            bytes: 0,
            counts: JobCounts::default(),
            unburied: 0,
            put_rate: PerSecond::default(),
            done_rate: PerSecond::default(),
        }
    }

    /// Returns the bytes of the largest payload that the queue and at least one reader can hold.
    pub(super) fn allowed(&self) -> u64 {
        self.settings.bytes.saturating_sub(ENVELOPE_BYTES).min(self.settings.max_payload)
    }

    /// Returns how many jobs were dropped, with the dead letters for which there was no queue.
    pub(super) fn lost(&self) -> u64 {
        self.counts.shed + self.unburied
    }

    /// Places a job or drops it by the policy, without waiting. Returns the reader to wake. Fails where the policy
    /// refuses the job.
    pub(super) fn place(&mut self, job: QueuedJob) -> Result<Option<Arc<JobReader>>, ()> {
        let policy = self.settings.when_full;
        if !self.has_room(&job) {
            match policy {
                QueuePolicy::DropOldest if self.has_room_beside_hands(&job) => self.drop_oldest_for(&job),
                QueuePolicy::DropOldest | QueuePolicy::DropNewest => {
                    self.counts.shed += 1;
                    return Ok(None);
                }
                QueuePolicy::Reject | QueuePolicy::Block => {
                    self.counts.refused += 1;
                    return Err(());
                }
            }
        }
        self.count_put(job.at);
        Ok(self.add(job))
    }

    /// Hands a new job to the first waiting reader that can take it, and returns that reader to wake. Without such a
    /// reader, the job waits at the end.
    pub(super) fn add(&mut self, job: QueuedJob) -> Option<Arc<JobReader>> {
        self.bytes += job.bytes();
        match self.assign(job) {
            Ok(reader) => Some(reader),
            Err(job) => {
                self.waiting.push_back(job);
                None
            }
        }
    }

    /// Hands a job that comes back to the first waiting reader that can take it, and returns that reader to wake.
    /// Without such a reader, the job waits in front.
    pub(super) fn add_first(&mut self, job: QueuedJob) -> Option<Arc<JobReader>> {
        match self.assign(job) {
            Ok(reader) => Some(reader),
            Err(job) => {
                self.waiting.push_front(job);
                None
            }
        }
    }

    /// Takes the first waiting job that this reader may have.
    pub(super) fn take_for(&mut self, reader: &JobReader) -> Option<HandedJob> {
        let (job, permit) = self.waiting.take(|job| reader.fits(job), || reader.permit())?;
        self.most = self.most.max(reader.count_one(self.most));
        self.hold(&job);
        Some(HandedJob(job, permit))
    }

    /// Counts a job as no longer in hand. Its bytes still count in the queue.
    pub(super) fn release(&mut self, job: &QueuedJob) {
        self.in_hand -= 1;
        self.in_hand_bytes -= job.bytes();
    }

    /// Lets in jobs that wait for room, as far as they fit. Returns the readers to wake.
    pub(super) fn admit(&mut self) -> Vec<Arc<JobReader>> {
        let mut woken = Vec::new();
        while let Some((_, job)) = self.blocked.front()
            && self.has_room(job)
            && let Some((ticket, job)) = self.blocked.pop_front()
        {
            self.count_put(moment(Instant::now()));
            woken.extend(self.add(job));
            ticket.admit();
        }
        woken
    }

    /// Drops the oldest waiting jobs until this one has room, or none waits any more.
    pub(super) fn drop_oldest_for(&mut self, job: &QueuedJob) {
        while !self.has_room(job)
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.counts.shed += 1;
        }
    }

    /// Takes out the waiting jobs that are meant, without counting them as lost.
    pub(super) fn extract(&mut self, is_meant: impl Fn(&QueuedJob) -> bool) -> Vec<QueuedJob> {
        let taken = self.waiting.extract(is_meant);
        self.bytes -= taken.iter().map(QueuedJob::bytes).sum::<u64>();
        taken
    }

    /// Counts a job that gets in at this [`moment`].
    pub(super) fn count_put(&mut self, at: u64) {
        self.counts.put += 1;
        self.put_rate.add_at(at, 1);
    }

    /// Whether the job would fit if no other job waited. Jobs in hand cannot make room.
    pub(super) fn has_room_beside_hands(&self, job: &QueuedJob) -> bool {
        u32::try_from(self.in_hand).is_ok_and(|held| held < self.settings.messages)
            && self.in_hand_bytes + job.bytes() <= self.settings.bytes
    }

    pub(super) fn has_room(&self, job: &QueuedJob) -> bool {
        let held = self.waiting.len() + self.in_hand;
        u32::try_from(held).is_ok_and(|held| held < self.settings.messages)
            && self.bytes + job.bytes() <= self.settings.bytes
    }

    /// Counts a job as in hand.
    fn hold(&mut self, job: &QueuedJob) {
        self.in_hand += 1;
        self.in_hand_bytes += job.bytes();
    }

    /// Hands a job to the first waiting reader that may have it, and counts it as in hand. Fails with the job if there
    /// is none.
    fn assign(&mut self, job: QueuedJob) -> Result<Arc<JobReader>, QueuedJob> {
        let takes = |(at, reader): (usize, &Arc<JobReader>)| {
            // The permit is taken only for a job that fits. Otherwise readers of other queues would miss it.
            Some((at, reader.fits(&job).then(|| reader.permit()).flatten()?))
        };
        let Some((at, permit)) = self.readers.iter().enumerate().find_map(takes) else { return Err(job) };
        let Some(reader) = self.readers.remove(at) else { return Err(job) };
        self.most = self.most.max(reader.count_one(self.most));
        self.hold(&job);
        *reader.handed.lock() = Some(HandedJob(job, permit));
        Ok(reader)
    }
}

/// One job.
#[derive(Clone, Debug)]
pub struct QueuedJob {
    /// The job's number, unique for as long as Main runs.
    pub id: MessageId,
    /// The peer that put it.
    pub sender: PeerId,
    /// When it was put, as a [`moment`].
    pub at: u64,
    /// The work, in the queue's own encoding.
    pub payload: Bytes,
    /// How often the job was delivered.
    pub deliveries: u32,
    /// For a dead letter, the queue in which it died, and how often that queue delivered it.
    pub died_in: Option<Box<(QueueName, u32)>>,
    /// Tells the sender what becomes of the job, if the sender waits for that.
    pub(crate) fate: Option<Arc<Watched>>,
    /// What the spans of the job's deliveries need, if the job is sampled.
    pub(crate) traced: Option<Box<JobTrace>>,
}

impl QueuedJob {
    /// Whether the sender has taken the job back.
    pub(super) fn is_given_up(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.is_given_up())
    }

    /// Whether the job is too large for all readers. A dead letter does not count as too large: it waits to be put back
    /// into the queue where it died.
    pub(super) fn is_unfit(&self, max_payload: u64) -> bool {
        self.died_in.is_none() && self.payload.len() as u64 > max_payload
    }

    pub(super) fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + self.payload.len() as u64
    }
}

/// What an operator sets for a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// The most jobs, waiting and in hand.
    pub messages: u32,
    /// The most bytes, waiting and in hand.
    pub bytes: u64,
    /// What happens to a job that finds no room.
    pub when_full: QueuePolicy,
    /// Deliveries after which a job that comes back is dead.
    pub max_deliveries: u32,
    /// Bytes of the largest payload that any reader takes.
    pub max_payload: u64,
    /// The contract whose provider keeps the queue's jobs. A put is then a request to that provider, which offers the
    /// job to this queue.
    pub store: Option<ContractName>,
}

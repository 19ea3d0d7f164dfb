//! Everything in a queue that its lock guards: what waits, what is in hand, and the line of readers.
//!
//! Decides what has room and which reader is handed a job. Wakes nobody: it returns the readers to wake.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use weir_metrics::PerSecond;
use weir_names::QueuePolicy;

use super::{
    job::QueuedJob,
    reader::{HandedJob, JobReader},
    settings::QueueSettings,
    stats::JobCounts,
};
use crate::{id::PeerId, message::ENVELOPE_BYTES, room::Ticket};

#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) settings: QueueSettings,
    /// None is put any more: it is not configured, or Main has ended.
    pub(super) is_closed: bool,
    pub(super) waiting: VecDeque<QueuedJob>,
    /// Jobs that wait for room.
    pub(super) blocked: VecDeque<(Ticket, QueuedJob)>,
    /// Those who wait for a job: who has had fewest, and of equals has waited longest, first.
    pub(super) readers: VecDeque<Arc<JobReader>>,
    /// The most jobs that a reader has had.
    pub(super) most: u64,
    /// Peers that take, and how many readers of theirs there are.
    pub(super) takers: BTreeMap<PeerId, u32>,
    pub(super) in_hand: usize,
    pub(super) in_hand_bytes: u64,
    /// Of the jobs that wait and those in hand.
    pub(super) bytes: u64,
    pub(super) counts: JobCounts,
    /// Jobs that were delivered too often, and that no other queue keeps.
    pub(super) unburied: u64,
    pub(super) put_rate: PerSecond,
    pub(super) done_rate: PerSecond,
}

impl QueueState {
    pub(super) fn new(settings: QueueSettings) -> Self {
        Self {
            settings,
            is_closed: false,
            waiting: VecDeque::new(),
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

    /// Bytes of the largest payload that it takes.
    pub(super) fn allowed(&self) -> u64 {
        self.settings.bytes.saturating_sub(ENVELOPE_BYTES).min(self.settings.max_payload)
    }

    /// Whether nobody takes a job so large. A dead letter stays whatever its size: it can be put back.
    pub(super) fn is_unfit(&self, job: &QueuedJob) -> bool {
        job.died_in.is_none() && job.payload.len() as u64 > self.settings.max_payload
    }

    /// Jobs of which nothing is left.
    pub(super) fn lost(&self) -> u64 {
        self.counts.shed + self.unburied
    }

    /// Places a job as a policy has it that does not wait, and says who is to be woken; fails where it is refused.
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
        self.count_put();
        Ok(self.add(job))
    }

    /// Hands a new job to the first who waits and takes it, who is to be woken, or lets it wait.
    pub(super) fn add(&mut self, job: QueuedJob) -> Option<Arc<JobReader>> {
        self.bytes += job.bytes();
        match self.hand_over(job) {
            Ok(reader) => Some(reader),
            Err(job) => {
                self.waiting.push_back(job);
                None
            }
        }
    }

    /// The same with one that was in hand: it comes before those that wait.
    pub(super) fn add_first(&mut self, job: QueuedJob) -> Option<Arc<JobReader>> {
        match self.hand_over(job) {
            Ok(reader) => Some(reader),
            Err(job) => {
                self.waiting.push_front(job);
                None
            }
        }
    }

    /// The first job that waits and that this reader may have.
    pub(super) fn take_for(&mut self, reader: &JobReader) -> Option<HandedJob> {
        let at = self.waiting.iter().position(|job| reader.fits(job))?;
        let permit = reader.permit()?;
        let job = self.waiting.remove(at)?;
        self.most = self.most.max(reader.count_one(self.most));
        self.hold(&job);
        Some(HandedJob(job, permit))
    }

    pub(super) fn release(&mut self, job: &QueuedJob) {
        self.in_hand -= 1;
        self.in_hand_bytes -= job.bytes();
    }

    /// Lets in what waits for room, as far as there is some.
    pub(super) fn admit(&mut self) -> Vec<Arc<JobReader>> {
        let mut woken = Vec::new();
        while let Some((_, job)) = self.blocked.front()
            && self.has_room(job)
            && let Some((ticket, job)) = self.blocked.pop_front()
        {
            self.count_put();
            woken.extend(self.add(job));
            ticket.admit();
        }
        woken
    }

    /// The oldest that wait give way.
    pub(super) fn drop_oldest_for(&mut self, job: &QueuedJob) {
        while !self.has_room(job)
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.counts.shed += 1;
        }
    }

    pub(super) fn count_put(&mut self) {
        self.counts.put += 1;
        self.put_rate.add(Instant::now(), 1);
    }

    /// Whether there is room if nothing waits: what is in hand stays.
    pub(super) fn has_room_beside_hands(&self, job: &QueuedJob) -> bool {
        u32::try_from(self.in_hand).is_ok_and(|held| held < self.settings.messages)
            && self.in_hand_bytes + job.bytes() <= self.settings.bytes
    }

    pub(super) fn has_room(&self, job: &QueuedJob) -> bool {
        let held = self.waiting.len() + self.in_hand;
        u32::try_from(held).is_ok_and(|held| held < self.settings.messages)
            && self.bytes + job.bytes() <= self.settings.bytes
    }

    fn hold(&mut self, job: &QueuedJob) {
        self.in_hand += 1;
        self.in_hand_bytes += job.bytes();
    }

    fn hand_over(&mut self, job: QueuedJob) -> Result<Arc<JobReader>, QueuedJob> {
        let takes = |(at, reader): (usize, &Arc<JobReader>)| {
            Some((at, reader.permit().filter(|_| reader.fits(&job))?))
        };
        let Some((at, permit)) = self.readers.iter().enumerate().find_map(takes) else { return Err(job) };
        let Some(reader) = self.readers.remove(at) else { return Err(job) };
        self.most = self.most.max(reader.count_one(self.most));
        self.hold(&job);
        *reader.handed() = Some(HandedJob(job, permit));
        Ok(reader)
    }
}

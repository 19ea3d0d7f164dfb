//! The queues of Main in memory: the jobs that wait, the jobs in hand, and the state of each job.

use std::collections::{BTreeMap, VecDeque};

use super::{EXTENSION, Host, TEST, number_of};
use crate::{
    Error, JobId,
    host::{Job, MessageId, Options},
    testing::JobState,
};

/// Deliveries of a job before it goes to the dead letters: Main's default.
const MAX_DELIVERIES: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Queues {
    /// The queues, by their numbers.
    queues: Vec<Queue>,
    /// The state of all jobs so far.
    jobs: BTreeMap<MessageId, JobState>,
    in_hand: Vec<Job>,
}

#[derive(Debug)]
struct Queue {
    name: String,
    waiting: VecDeque<Job>,
    /// Jobs that the extension asks for, beside those in hand.
    asked: u32,
}

impl Queues {
    pub(super) fn is_readable(&self) -> bool {
        self.queues.iter().any(Queue::is_readable)
    }

    pub(super) fn take(&mut self) -> Option<Job> {
        let queue = self.queues.iter_mut().find(|queue| queue.is_readable())?;
        queue.asked -= 1;
        let mut job = queue.waiting.pop_front()?;
        job.deliveries += 1;
        self.jobs.insert(job.id, JobState::InHand { deliveries: job.deliveries });
        self.in_hand.push(job.clone());
        Some(job)
    }

    /// The number of a queue. A new name makes a new queue.
    fn number(&mut self, name: &str) -> Result<u32, Error> {
        let known = self.queues.iter().position(|queue| queue.name == name);
        let place = known.unwrap_or_else(|| {
            self.queues.push(Queue { name: name.to_owned(), waiting: VecDeque::new(), asked: 0 });
            self.queues.len() - 1
        });
        number_of(place)
    }

    fn queue(&mut self, number: u32) -> Result<&mut Queue, Error> {
        let queue = usize::try_from(number).ok().and_then(|place| self.queues.get_mut(place));
        queue.ok_or_else(|| Error::Invalid(format!("there is no queue of number {number}")))
    }

    fn put(&mut self, job: Job) -> Result<(), Error> {
        self.jobs.insert(job.id, JobState::Waiting { deliveries: 0 });
        self.queue(job.queue)?.waiting.push_back(job);
        Ok(())
    }

    /// Takes a job out of the extension's hands. Its next state is up to the caller.
    fn end(&mut self, id: MessageId) -> Result<Job, Error> {
        let place = self.in_hand.iter().position(|job| job.id == id);
        let job = place.map(|place| self.in_hand.swap_remove(place));
        job.ok_or_else(|| Error::Invalid(format!("job {id} is not in hand")))
    }

    fn give_back(&mut self, id: MessageId) -> Result<(), Error> {
        let job = self.end(id)?;
        let deliveries = job.deliveries;
        if deliveries < MAX_DELIVERIES {
            self.jobs.insert(id, JobState::Waiting { deliveries });
            self.queue(job.queue)?.waiting.push_front(job);
        } else {
            self.jobs.insert(id, JobState::Dead);
        }
        Ok(())
    }

    /// Gives back the jobs that an extension had in hand when it ended.
    pub(super) fn give_all_back(&mut self) {
        let in_hand: Vec<MessageId> = self.in_hand.iter().map(|job| job.id).collect();
        for id in in_hand {
            drop(self.give_back(id));
        }
    }
}

impl Queue {
    fn is_readable(&self) -> bool {
        self.asked > 0 && !self.waiting.is_empty()
    }
}

impl Host {
    pub(crate) fn open_queue(&self, queue: &str) -> Result<u32, Error> {
        if self.may_put(queue).is_err() {
            self.may_take(queue)?;
        }
        self.0.inbox.borrow_mut().queues().number(queue)
    }

    pub(crate) fn put(&self, queue: u32, payload: &[u8], _options: Options) -> Result<MessageId, Error> {
        let name = self.0.inbox.borrow_mut().queues().queue(queue)?.name.clone();
        self.may_put(&name)?;
        self.check_size(payload)?;
        self.put_as(EXTENSION, queue, payload)
    }

    /// Asks for this many jobs more than those in hand.
    pub(crate) fn take_jobs(&self, queue: u32, jobs: u32) -> Result<(), Error> {
        let name = self.0.inbox.borrow_mut().queues().queue(queue)?.name.clone();
        self.may_take(&name)?;
        self.0.inbox.borrow_mut().queues().queue(queue)?.asked = jobs;
        Ok(())
    }

    pub(crate) fn done(&self, job: MessageId) -> Result<(), Error> {
        let mut inbox = self.0.inbox.borrow_mut();
        inbox.queues().end(job)?;
        inbox.queues().jobs.insert(job, JobState::Done);
        Ok(())
    }

    pub(crate) fn give_back(&self, job: MessageId) -> Result<(), Error> {
        self.0.inbox.borrow_mut().queues().give_back(job)
    }

    pub(crate) fn put_from_test(&self, queue: &str, payload: &[u8]) -> Result<JobId, Error> {
        let number = self.0.inbox.borrow_mut().queues().number(queue)?;
        self.put_as(TEST, number, payload).map(JobId)
    }

    /// Takes all waiting jobs of a queue for the test, and counts them as done.
    pub(crate) fn drain(&self, queue: &str) -> Vec<Vec<u8>> {
        let mut inbox = self.0.inbox.borrow_mut();
        let queues = inbox.queues();
        let waiting: Vec<Job> = queues
            .queues
            .iter_mut()
            .filter(|known| known.name == queue)
            .flat_map(|queue| queue.waiting.drain(..))
            .collect();
        for job in &waiting {
            queues.jobs.insert(job.id, JobState::Done);
        }
        waiting.into_iter().map(|job| job.payload).collect()
    }

    pub(crate) fn job(&self, JobId(id): JobId) -> Option<JobState> {
        self.0.inbox.borrow_mut().queues().jobs.get(&id).copied()
    }

    fn put_as(&self, sender: u32, queue: u32, payload: &[u8]) -> Result<MessageId, Error> {
        let id = self.next_id();
        let payload = payload.to_owned();
        let job = Job { id, queue, sender, deliveries: 0, waited_us: 0, payload };
        self.0.inbox.borrow_mut().queues().put(job)?;
        Ok(id)
    }

    fn may_put(&self, queue: &str) -> Result<(), Error> {
        self.may_use("put jobs into", "puts", self.0.manifest.puts, queue)
    }

    fn may_take(&self, queue: &str) -> Result<(), Error> {
        self.may_use("take jobs of", "takes", self.0.manifest.takes, queue)
    }

    fn may_use(&self, verb: &str, key: &str, grants: &[&str], queue: &str) -> Result<(), Error> {
        if grants.contains(&queue) {
            return Ok(());
        }
        let id = self.0.manifest.id;
        Err(Error::PermissionDenied(format!("`{id}` may not {verb} `{queue}`; `{key}` would grant it")))
    }
}

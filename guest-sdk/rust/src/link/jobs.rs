//! The waits for jobs of each queue, and the number of jobs that Main is asked for.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    Error,
    host::{Host, Job, Message, MessageId, Options},
    log,
};

#[derive(Debug)]
pub(crate) struct Jobs {
    host: Host,
    /// Whether jobs can come: from the first receive until stop.
    is_open: Cell<bool>,
    last_ticket: Cell<u64>,
    queues: RefCell<Vec<Queue>>,
}

#[derive(Debug)]
struct Queue {
    name: &'static str,
    number: u32,
    /// The waits for one job each, with their tickets, oldest first.
    takers: VecDeque<(u64, Taker)>,
    /// Jobs that the queue's handler could take now.
    free: usize,
    /// Delivered jobs that are not handed on yet. Main counts them as taken; their takers still wait.
    arrived: usize,
}

#[derive(Debug)]
enum Taker {
    Waiting(Option<Waker>),
    Given(Job),
}

impl Jobs {
    pub(super) fn new(host: Host) -> Self {
        Self { host, is_open: Cell::new(false), last_ticket: Cell::new(0), queues: RefCell::default() }
    }

    pub(super) fn open(&self) {
        self.is_open.set(true);
    }

    /// Asks for no more jobs. Waits for a job get an error.
    pub(crate) fn close(&self) {
        self.is_open.set(false);
        for queue in self.queues.borrow().iter() {
            for (_, taker) in &queue.takers {
                if let Taker::Waiting(Some(waker)) = taker {
                    waker.wake_by_ref();
                }
            }
            // Without a stop from Main, jobs could still come. An error would change nothing.
            drop(self.host.take_jobs(queue.number, 0));
        }
    }

    pub(crate) fn put(
        &self,
        queue: &'static str,
        payload: &[u8],
        options: Options,
    ) -> Result<MessageId, Error> {
        self.host.put(self.number_of(queue)?, payload, options)
    }

    pub(crate) async fn take(&self, queue: &'static str) -> Result<Job, Error> {
        if !self.is_open.get() {
            return Err(no_more(queue));
        }
        let number = self.number_of(queue)?;
        let ticket = self.last_ticket.get() + 1;
        self.last_ticket.set(ticket);
        self.with(number, |queue| queue.takers.push_back((ticket, Taker::Waiting(None))));
        let pending = PendingJob { jobs: self, queue, number, ticket };
        self.ask(number)?;
        pending.await
    }

    /// Lets the queue's handler take this many more jobs.
    pub(crate) fn offer(&self, number: u32, more: usize) -> Result<(), Error> {
        self.with(number, |queue| queue.free += more);
        self.ask(number)
    }

    /// Counts the jobs of a batch, before the first message of it is handled.
    pub(crate) fn arrived(&self, messages: &[Message]) {
        for message in messages {
            if let Message::Job(job) = message {
                self.with(job.queue, |queue| queue.arrived += 1);
            }
        }
    }

    /// Hands a job to the longest wait for one. Returns it if it is for the queue's handler. An unwanted job
    /// goes back to Main.
    pub(crate) fn hand_on(&self, job: Job) -> Option<Job> {
        let mut queues = self.queues.borrow_mut();
        if let Some(queue) = queues.iter_mut().find(|queue| queue.number == job.queue) {
            queue.arrived = queue.arrived.saturating_sub(1);
            let is_waiting = |(_, taker): &&mut (u64, Taker)| matches!(taker, Taker::Waiting(_));
            if let Some((_, taker)) = queue.takers.iter_mut().find(is_waiting) {
                if let Taker::Waiting(Some(waker)) = std::mem::replace(taker, Taker::Given(job)) {
                    waker.wake();
                }
                return None;
            }
            if queue.free > 0 {
                queue.free -= 1;
                return Some(job);
            }
        }
        drop(queues);
        self.give_back(job.id);
        None
    }

    pub(crate) fn give_back(&self, job: MessageId) {
        if let Err(error) = self.host.give_back(job) {
            log::warn("a job could not be given back", &[("job", &job), ("error", &error)]);
        }
    }

    pub(crate) fn number_of(&self, name: &'static str) -> Result<u32, Error> {
        let known = self.queues.borrow().iter().find(|queue| queue.name == name).map(|queue| queue.number);
        if let Some(number) = known {
            return Ok(number);
        }
        let number = self.host.open_queue(name)?;
        let (takers, free, arrived) = (VecDeque::new(), 0, 0);
        self.queues.borrow_mut().push(Queue { name, number, takers, free, arrived });
        Ok(number)
    }

    /// Asks Main for as many jobs as the waits and the handler of a queue can take, less those that have arrived.
    fn ask(&self, number: u32) -> Result<(), Error> {
        let wanted = self.with(number, |queue| {
            let waiting = queue.takers.iter().filter(|(_, taker)| matches!(taker, Taker::Waiting(_))).count();
            waiting.saturating_add(queue.free).saturating_sub(queue.arrived)
        });
        match wanted {
            Some(wanted) if self.is_open.get() => {
                self.host.take_jobs(number, u32::try_from(wanted).unwrap_or(u32::MAX))
            }
            _ => Ok(()),
        }
    }

    fn with<T>(&self, number: u32, act: impl FnOnce(&mut Queue) -> T) -> Option<T> {
        self.queues.borrow_mut().iter_mut().find(|queue| queue.number == number).map(act)
    }
}

/// Waits for one job. Dropping it before a job has come asks Main for one job less. Dropping it with a job gives that
/// job back.
struct PendingJob<'a> {
    jobs: &'a Jobs,
    queue: &'static str,
    number: u32,
    ticket: u64,
}

impl PendingJob<'_> {
    fn remove(&self) -> Option<Taker> {
        let place = |queue: &Queue| queue.takers.iter().position(|(ticket, _)| *ticket == self.ticket);
        let taken = self.jobs.with(self.number, |queue| queue.takers.remove(place(queue)?))??;
        Some(taken.1)
    }
}

impl Future for PendingJob<'_> {
    type Output = Result<Job, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let is_open = self.jobs.is_open.get();
        let given = self.jobs.with(self.number, |queue| {
            let own = queue.takers.iter_mut().find(|(ticket, _)| *ticket == self.ticket);
            match own.map(|(_, taker)| taker) {
                Some(Taker::Waiting(waker)) if is_open => {
                    *waker = Some(cx.waker().clone());
                    false
                }
                _ => true,
            }
        });
        if given == Some(false) {
            return Poll::Pending;
        }
        Poll::Ready(match self.remove() {
            Some(Taker::Given(job)) => Ok(job),
            _ => Err(no_more(self.queue)),
        })
    }
}

impl Drop for PendingJob<'_> {
    fn drop(&mut self) {
        match self.remove() {
            Some(Taker::Given(job)) => self.jobs.give_back(job.id),
            Some(Taker::Waiting(_)) => {
                if let Err(error) = self.jobs.ask(self.number) {
                    log::warn(
                        "fewer jobs could not be asked for",
                        &[("queue", &self.queue), ("error", &error)],
                    );
                }
            }
            None => {}
        }
    }
}

fn no_more(queue: &str) -> Error {
    Error::NotReady(format!(
        "jobs of `{queue}` come from when `on_start` is over until the extension is told to stop"
    ))
}

//! Jobs that the program takes and has in hand.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use weir_connection::next_free;
use weir_host::{
    Error,
    client::{Job, Queue},
    peers::Session,
};
use weir_peer::frame::FromMain;

use super::output::{Close, Output};

/// A queue, and the job that came from it. `None` if no more will come.
type Taken = (Queue, Option<Job>);

#[derive(Default)]
pub(super) struct Jobs {
    /// How many more jobs the program takes from each queue. The program's grants bound the number of queues.
    credit: HashMap<String, u32>,
    /// The wait for the next job of each queue with credit.
    waits: FuturesUnordered<Pin<Box<dyn Future<Output = Taken> + Send>>>,
    in_hand: HashMap<u32, Job>,
    last: u32,
}

/// Shows how many jobs are in hand, and none of their payloads.
impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("in_hand", &self.in_hand.len()).finish_non_exhaustive()
    }
}

impl Jobs {
    /// Lets the program have so many more jobs of this queue.
    pub(super) fn take(&mut self, session: &Session, queue: &str, jobs: u32) -> Result<(), Error> {
        let queue = session.client().queue(queue)?;
        queue.may_take()?;
        if jobs == 0 {
            return Ok(());
        }
        let credit = self.credit.entry(queue.name().to_string()).or_default();
        let more = credit.saturating_add(jobs);
        if std::mem::replace(credit, more) == 0 {
            self.wait(queue);
        }
        Ok(())
    }

    /// Sends the next job, or that its queue has no more, if either has come. Otherwise returns false.
    pub(super) fn poll_one(&mut self, context: &mut Context<'_>, output: &mut Output) -> bool {
        let Poll::Ready(Some((queue, job))) = self.waits.poll_next_unpin(context) else { return false };
        let Some(job) = job else {
            self.credit.remove(queue.name().as_str());
            output.send(&FromMain::NoJobs { queue: queue.name().as_str() });
            return true;
        };
        let number = next_free(&mut self.last, &self.in_hand);
        output.span(job.trace());
        output.send(&FromMain::Job {
            job: number,
            message: job.id().0,
            deliveries: job.deliveries(),
            sender: &job.sender(),
            queue: queue.name().as_str(),
            payload: job.payload().clone(),
        });
        self.in_hand.insert(number, job);
        if let Some(credit) = self.credit.get_mut(queue.name().as_str()) {
            *credit -= 1;
            if *credit > 0 {
                self.wait(queue);
            }
        }
        true
    }

    /// Finishes a job if `is_done`, else gives it back to its queue.
    pub(super) fn end(&mut self, number: u32, is_done: bool) -> Result<(), Close> {
        match self.in_hand.remove(&number) {
            Some(job) if is_done => job.done(),
            Some(job) => drop(job),
            None => return Err(Close::protocol(format!("no job {number} is in hand"))),
        }
        Ok(())
    }

    fn wait(&mut self, mut queue: Queue) {
        self.waits.push(Box::pin(async move {
            let job = queue.take().await;
            (queue, job)
        }));
    }
}

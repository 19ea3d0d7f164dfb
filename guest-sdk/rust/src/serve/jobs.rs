//! Hands jobs to the handlers of their queues, up to a fixed number at once.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;

use crate::{Context, Error, context::Origin, host, link::Link, log, program::JobHandler, queue::Held};

#[derive(Default)]
pub(super) struct Jobs {
    handlers: Vec<Handler>,
}

struct Handler {
    queue: &'static str,
    number: u32,
    at_once: usize,
    handler: JobHandler,
}

impl Jobs {
    pub(super) fn add(
        &mut self,
        link: &Link,
        (queue, at_once, handler): (&'static str, usize, JobHandler),
    ) -> Result<(), Error> {
        let number = link.jobs.number_of(queue)?;
        self.handlers.push(Handler { queue, number, at_once, handler });
        Ok(())
    }

    pub(super) fn take(&self, link: &Link) -> Result<(), Error> {
        self.handlers.iter().try_for_each(|handler| link.jobs.offer(handler.number, handler.at_once))
    }

    /// The future that handles a job. `None` if the job went to a wait for one, or back to Main.
    pub(super) fn start(&self, link: &Rc<Link>, job: host::Job) -> Option<LocalBoxFuture<'static, ()>> {
        let job = link.jobs.hand_on(job)?;
        let Handler { queue, number, handler, .. } =
            self.handlers.iter().find(|handler| handler.number == job.queue)?;
        let (queue, number, handler, link) = (*queue, *number, handler.clone(), link.clone());
        Some(Box::pin(async move {
            let (id, sender, deliveries) = (job.id, job.sender, job.deliveries);
            let (held, payload) = Held::take(link.clone(), job);
            let in_hand = Rc::new(id);
            let context = Context::new(link.clone(), Origin::Job(sender, Rc::downgrade(&in_hand)));
            let outcome = handler(context, payload).await;
            // Tasks of the handler may go on, but what they do is not for this job any more.
            drop(in_hand);
            let outcome = match outcome {
                Ok(()) => held.done(),
                Err(error) => {
                    drop(held);
                    Err(error)
                }
            };
            if let Err(error) = outcome {
                log::warn(
                    "a job was not done",
                    &[("queue", &queue), ("job", &id), ("deliveries", &deliveries), ("error", &error)],
                );
            }
            if let Err(error) = link.jobs.offer(number, 1) {
                log::error("no more jobs can be taken", &[("queue", &queue), ("error", &error)]);
            }
        }))
    }
}

//! What a frame of Main's does to a session.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;
use weir_names::{Error, HandlerError};

use super::{GivenUp, Pending, Session, WaitingJob, WaitingRequest};
use crate::{
    Ended, Event,
    frame::{FromMain, FromPeer},
};

/// The code of the answer to a request that the program leaves without an answer.
pub(crate) const DROPPED: &str = "dropped";

impl Session {
    /// Does what a frame says, or says why the session ends. Numbers that are not known any more are ignored: what they
    /// name may have been given up while the frame was on its way.
    pub(super) fn accept(&self, frame: FromMain<'_>) -> Result<(), Ended> {
        match frame {
            FromMain::Answer { id, payload } => self.accept_answer(id, Ok(payload))?,
            FromMain::Error { id, error } => self.accept_answer(id, Err(error))?,
            FromMain::Request { request, remaining_ms, message, sender, contract, operation, payload } => {
                let waiting = WaitingRequest {
                    number: request,
                    message,
                    deadline: Instant::now() + Duration::from_millis(remaining_ms.into()),
                    sender: sender.to_owned(),
                    operation: operation.to_owned(),
                    payload,
                    span: self.tables().span.take(),
                    given_up: Arc::default(),
                };
                self.accept_request(contract, waiting)?;
            }
            FromMain::GivenUp { request } => self.give_up(request),
            FromMain::Event { subscription, sequence, lost, retained, sender, topic, payload } => {
                let (topic, sender) = (topic.to_owned(), sender.to_owned());
                let event = Event { topic, sender, sequence, lost, retained, payload };
                self.accept_event(subscription, event)?;
            }
            FromMain::Job { job, message, deliveries, sender, queue, payload } => {
                let (number, sender, span) = (job, sender.to_owned(), self.tables().span.take());
                self.accept_job(queue, WaitingJob { number, message, deliveries, sender, payload, span })?;
            }
            FromMain::Dropped { subscription } => {
                let events = self.tables().subscriptions.remove(&subscription);
                if let Some(events) = events {
                    events.end();
                }
            }
            FromMain::NoJobs { queue } => self.tables().drop_jobs_credit(queue),
            FromMain::Trace { span } => self.tables().span = Some(span),
            FromMain::Close { code, text } => {
                return Err(Ended::Closed { code: code.to_owned(), text: text.to_owned() });
            }
            FromMain::Welcome { .. } => return Err(Ended::Protocol("a second WELCOME".to_owned())),
        }
        Ok(())
    }

    fn accept_answer(&self, id: u32, answer: Result<Bytes, Error>) -> Result<(), Ended> {
        let pending = self.tables().pending.remove(&id);
        match pending {
            Some(Pending::Answer(sender)) => drop(sender.send(answer)),
            Some(Pending::Subscribe(events, sender)) => {
                let number = answer.map(|payload| payload.as_array().copied().map(u32::from_le_bytes));
                let number = number.transpose().ok_or_else(|| Ended::wrong_payload("SUBSCRIBE"))?;
                let Ok(subscription) = number else {
                    drop(sender.send(number));
                    return Ok(());
                };
                if !self.tables().add_subscription(subscription, events) {
                    // The same pattern has the same number. The first subscription stays.
                    let text = "this session has subscribed to that pattern already";
                    drop(sender.send(Err(Error::Invalid(text.to_owned()))));
                } else if sender.send(number).is_err() {
                    self.unsubscribe(subscription);
                }
            }
            Some(Pending::Serve(contract, requests, sender)) => {
                if answer.is_ok() {
                    self.tables().add_contract(contract.clone(), requests);
                }
                if let Err(Ok(())) = sender.send(answer.map(drop)) {
                    self.stop_serving(&contract);
                }
            }
            Some(Pending::Take(queue)) => {
                if let Err(error) = answer {
                    let mut tables = self.tables();
                    tables.jobs_credit = tables.jobs_credit.saturating_sub(1);
                    queue.use_credit();
                    drop(queue.jobs.push(Err(error)));
                }
            }
            None => {}
        }
        Ok(())
    }

    fn accept_request(&self, contract: &str, request: WaitingRequest) -> Result<(), Ended> {
        let number = request.number;
        let mut tables = self.tables();
        if tables.in_hand.len() >= self.requests {
            return Err(Ended::Protocol("more requests than the peer takes".to_owned()));
        }
        if tables.in_hand.contains_key(&number) {
            return Err(Ended::Protocol(format!("request {number} is in hand already")));
        }
        let given_up = request.given_up.clone();
        let Some(requests) = tables.served.get(contract) else {
            drop(tables);
            // Without room the request is left to its deadline: refusals must not fill the memory.
            if !self.outgoing.is_full() {
                self.outgoing.push(&not_answered(number));
            }
            return Ok(());
        };
        if requests.push(request).is_ok() {
            tables.in_hand.insert(number, given_up);
        }
        Ok(())
    }

    fn give_up(&self, request: u32) {
        let mut tables = self.tables();
        if let Some(given_up) = tables.in_hand.remove(&request) {
            // The request may still wait, or a reader may have it.
            tables.served.values().for_each(|requests| requests.retain(|waiting| waiting.number != request));
            drop(tables);
            GivenUp::set(&given_up);
        }
    }

    fn accept_event(&self, subscription: u32, event: Event) -> Result<(), Ended> {
        let mut tables = self.tables();
        let Some(credit) = tables.events_credit.checked_sub(1) else {
            return Err(Ended::Protocol("more events than the credit".to_owned()));
        };
        tables.events_credit = credit;
        let waits = tables.subscriptions.get(&subscription).is_some_and(|events| events.push(event).is_ok());
        drop(tables);
        if !waits {
            self.renew_credit(1);
        }
        Ok(())
    }

    fn accept_job(&self, queue: &str, job: WaitingJob) -> Result<(), Ended> {
        let number = job.number;
        let mut tables = self.tables();
        let Some(credit) = tables.jobs_credit.checked_sub(1) else {
            return Err(Ended::Protocol("more jobs than the credit".to_owned()));
        };
        tables.jobs_credit = credit;
        let waits = tables.queues.get(queue).is_some_and(|(queue, _)| {
            queue.use_credit();
            queue.jobs.push(Ok(job)).is_ok()
        });
        drop(tables);
        if !waits {
            self.outgoing.push(&FromPeer::Return { job: number });
        }
        Ok(())
    }

    /// Ends a subscription that the program has dropped.
    pub(crate) fn unsubscribe(&self, subscription: u32) {
        let events = self.tables().subscriptions.remove(&subscription);
        if let Some(events) = events {
            self.outgoing.push(&FromPeer::Unsubscribe { id: 0, subscription });
            self.renew_credit(events.close().len());
        }
    }

    /// Takes a contract that the program has stopped to serve off the tables, and answers its waiting requests with
    /// [`DROPPED`].
    pub(crate) fn stop_serving(&self, contract: &str) {
        let mut tables = self.tables();
        let waiting: Vec<_> =
            tables.served.remove(contract).map(|requests| requests.close().into()).unwrap_or_default();
        let released: Vec<_> = waiting.into_iter().filter(|request| tables.release(request.number)).collect();
        drop(tables);
        for request in released {
            self.outgoing.push(&not_answered(request.number));
        }
    }
}

/// The answer to a request that the program leaves without an answer.
pub(crate) fn not_answered(request: u32) -> FromPeer<'static> {
    FromPeer::Fail { request, error: HandlerError::new(DROPPED, "the peer dropped the request") }
}

//! Messages that wait for the extension, in Main's order of delivery.

use std::{collections::VecDeque, task::Waker};

use super::{
    super::{Event, Message, Request, Response},
    queues::Queues,
};

#[derive(Debug, Default)]
pub(super) struct Lanes {
    stop: Stop,
    responses: VecDeque<Response>,
    requests: VecDeque<Request>,
    events: VecDeque<Event>,
    queues: Queues,
    /// Whether it is the turn of a job. Jobs and events take turns.
    job_next: bool,
    waker: Option<Waker>,
}

/// Whether the test has asked for a stop, and whether the extension has been told.
#[derive(Debug, Default, PartialEq, Eq)]
enum Stop {
    #[default]
    No,
    Asked,
    Told,
}

impl Lanes {
    pub(super) fn push(&mut self, message: Message) {
        match message {
            Message::Response(response) => self.responses.push_back(response),
            Message::Request(request) => self.requests.push_back(request),
            Message::Event(event) => self.events.push_back(event),
            Message::Job(_) => unreachable!("a job is in its queue until it is taken"),
        }
        self.wake();
    }

    pub(super) fn drop_events(&mut self, subscription: u32) {
        self.events.retain(|event| event.subscription != subscription);
    }

    pub(super) fn stop(&mut self) {
        self.stop = Stop::Asked;
        self.wake();
    }

    /// Takes the next message. `None` means stop, and an error means that nothing waits.
    ///
    /// After the first `None` only answers come, as long as some are `expected`, and then `None` again.
    pub(super) fn take(&mut self, expected: usize) -> Result<Option<Message>, Empty> {
        if self.stop == Stop::Asked {
            self.stop = Stop::Told;
            return Ok(None);
        }
        if let Some(response) = self.responses.pop_front() {
            return Ok(Some(Message::Response(response)));
        }
        if self.stop == Stop::Told {
            return if expected == 0 { Ok(None) } else { Err(Empty) };
        }
        if let Some(request) = self.requests.pop_front() {
            return Ok(Some(Message::Request(request)));
        }
        let mut event = || self.events.pop_front().map(Message::Event);
        let mut job = || self.queues.take().map(Message::Job);
        let next = if self.job_next { job().or_else(event) } else { event().or_else(job) };
        self.job_next = matches!(next, Some(Message::Event(_)));
        next.ok_or(Empty).map(Some)
    }

    /// The queues, to change them. Wakes the extension, which may get jobs from the change.
    pub(super) fn queues(&mut self) -> &mut Queues {
        self.wake();
        &mut self.queues
    }

    pub(super) fn is_readable(&self, expected: usize) -> bool {
        match self.stop {
            Stop::Asked => true,
            _ if !self.responses.is_empty() => true,
            Stop::Told => expected == 0,
            Stop::No => !(self.requests.is_empty() && self.events.is_empty()) || self.queues.is_readable(),
        }
    }

    pub(super) fn wake_when_readable(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[derive(Debug)]
pub(super) struct Empty;

//! What waits for the extension, in the order in which Main delivers it.

use std::{collections::VecDeque, task::Waker};

use super::super::{Event, Message, Request, Response};

#[derive(Debug, Default)]
pub(super) struct Lanes {
    stop: Stop,
    responses: VecDeque<Response>,
    requests: VecDeque<Request>,
    events: VecDeque<Event>,
    waker: Option<Waker>,
}

/// Whether the extension is to finish.
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
        }
        self.wake();
    }

    pub(super) fn stop(&mut self) {
        self.stop = Stop::Asked;
        self.wake();
    }

    /// The next message; none means stop, an error that there is nothing.
    ///
    /// Once stop has been said only answers follow, as long as `expected` of them are still to come,
    /// and then stop again.
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
        let next = self.requests.pop_front().map(Message::Request);
        next.or_else(|| self.events.pop_front().map(Message::Event)).ok_or(Empty).map(Some)
    }

    pub(super) fn is_readable(&self, expected: usize) -> bool {
        match self.stop {
            Stop::Asked => true,
            _ if !self.responses.is_empty() => true,
            Stop::Told => expected == 0,
            Stop::No => !(self.requests.is_empty() && self.events.is_empty()),
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

/// Nothing waits.
#[derive(Debug)]
pub(super) struct Empty;

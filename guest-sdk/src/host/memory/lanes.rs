//! What waits for the extension, in the order in which Main delivers it.

use std::{collections::VecDeque, task::Waker};

use super::super::{Event, Message, Request, Response};

#[derive(Debug, Default)]
pub(super) struct Lanes {
    stop: bool,
    responses: VecDeque<Response>,
    requests: VecDeque<Request>,
    events: VecDeque<Event>,
    waker: Option<Waker>,
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
        self.stop = true;
        self.wake();
    }

    /// The next message; none means stop, an error that there is nothing.
    pub(super) fn take(&mut self) -> Result<Option<Message>, Empty> {
        if self.stop {
            return Ok(None);
        }
        let next = self.responses.pop_front().map(Message::Response);
        let next = next.or_else(|| self.requests.pop_front().map(Message::Request));
        let next = next.or_else(|| self.events.pop_front().map(Message::Event));
        next.ok_or(Empty).map(Some)
    }

    pub(super) fn is_readable(&self) -> bool {
        self.stop
            || !(self.responses.is_empty() && self.requests.is_empty() && self.events.is_empty())
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

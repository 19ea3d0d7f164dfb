//! A small model of the bus: what waits where, and how each request ends.

use std::collections::VecDeque;

use super::*;

type Outcome = Result<Bytes, Error>;

#[derive(Default)]
pub(super) struct Model {
    pub(super) now_ms: u64,
    pub(super) requests: Vec<Modelled>,
    pub(super) peers: [ModelPeer; PEERS],
}

pub(super) struct Modelled {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) deadline_ms: u64,
    /// A caller waits for just this; else the answer goes to the caller's inbox.
    pub(super) slot: bool,
    pub(super) ended: bool,
    pub(super) outcome: Option<Outcome>,
}

#[derive(Default)]
pub(super) struct ModelPeer {
    /// A name of programs. Nothing that waits for one program waits for the next.
    pub(super) is_outside: bool,
    pub(super) life: Life,
    pub(super) told: bool,
    /// Waiting requests, by number.
    pub(super) waiting: VecDeque<usize>,
    pub(super) in_hand: Vec<usize>,
    pub(super) replies: VecDeque<usize>,
    /// Replies still to come or to be taken.
    pub(super) expected: usize,
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Life {
    #[default]
    Down,
    Up,
    Draining,
}

#[derive(Debug, PartialEq)]
pub(super) enum Found {
    Stop,
    Empty,
    Reply(usize),
    Request(usize),
}

impl ModelPeer {
    pub(super) fn new(is_outside: bool) -> Self {
        Self { is_outside, ..Self::default() }
    }
}

impl Model {
    pub(super) fn name(&self, index: usize) -> String {
        let kind = if self.peers[index].is_outside { "sidecar:" } else { "" };
        format!("{kind}p{index}")
    }

    pub(super) fn live(&self) -> usize {
        self.requests.iter().filter(|request| !request.ended).count()
    }

    pub(super) fn end(&mut self, number: usize, outcome: Option<Outcome>) -> bool {
        let request = &mut self.requests[number];
        if std::mem::replace(&mut request.ended, true) {
            return false;
        }
        let (from, to, slot) = (request.from, request.to, request.slot);
        let gave_up = outcome.is_none();
        request.outcome = outcome;
        self.peers[to].waiting.retain(|&waiting| waiting != number);
        match (slot, gave_up) {
            (true, _) => {}
            (false, true) => self.peers[from].expected -= 1,
            (false, false) => self.peers[from].replies.push_back(number),
        }
        true
    }

    pub(super) fn advance(&mut self, ms: u64) {
        self.now_ms += ms;
        let mut due: Vec<_> = (0..self.requests.len())
            .filter(|&number| {
                !self.requests[number].ended && self.requests[number].deadline_ms <= self.now_ms
            })
            .collect();
        due.sort_by_key(|&number| (self.requests[number].deadline_ms, number));
        for number in due {
            self.end(number, Some(Err(Error::Timeout)));
        }
    }

    pub(super) fn take(&mut self, index: usize) -> Found {
        let peer = &mut self.peers[index];
        if peer.life == Life::Draining && !std::mem::replace(&mut peer.told, true) {
            return Found::Stop;
        }
        if let Some(number) = peer.replies.pop_front() {
            peer.expected -= 1;
            return Found::Reply(number);
        }
        if peer.told {
            return if peer.expected == 0 { Found::Stop } else { Found::Empty };
        }
        match peer.waiting.pop_front() {
            Some(number) => {
                peer.in_hand.push(number);
                Found::Request(number)
            }
            None => Found::Empty,
        }
    }

    pub(super) fn refusal(&self, from: usize, to: usize, slot: bool) -> Option<Error> {
        let name = self.name(to);
        match self.peers[to].life {
            _ if from == to && !slot => Some(Error::Invalid(format!("`{name}` sends a request to itself"))),
            Life::Down if self.peers[to].is_outside => {
                Some(Error::NoProvider(format!("`{name}` is not connected")))
            }
            Life::Down => Some(Error::NoProvider(format!("`{name}` is not running"))),
            Life::Draining => Some(Error::NoProvider(format!("`{name}` is stopping"))),
            Life::Up if self.peers[to].waiting.len() >= ROOM => Some(Error::Overloaded(name)),
            Life::Up => None,
        }
    }
}

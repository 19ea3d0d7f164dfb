//! The readers of an inbox: each instance with what is its own, and the seats at which they serve.

use std::task::Waker;

use super::lane::Lane;
use crate::{id::ReaderId, message::Reply};

/// The place of a peer that serves an inbox, alone or as one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat(pub(super) usize);

impl Seat {
    /// The one that every inbox has.
    pub const FIRST: Self = Self(0);
}

/// Who serves at one seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeatState {
    /// Who gets requests and events. It may have ended.
    pub(super) current: ReaderId,
    /// The peer takes no requests.
    pub(super) refuses: bool,
}

/// What is one instance's own.
#[derive(Debug)]
pub(super) struct InboxReader {
    pub(super) id: ReaderId,
    pub(super) stop: StopState,
    /// Replies that are still to come.
    pub(super) expected: u32,
    pub(super) holds_requests: bool,
    /// Somebody may have given up waiting for a request that the instance has in hand.
    pub(super) has_abandoned_in_hand: bool,
    pub(super) replies: Lane<Reply>,
    /// Of the one task in which it waits.
    pub(super) task: Option<Waker>,
}

impl InboxReader {
    pub(super) fn new(id: ReaderId) -> Self {
        Self {
            id,
            stop: StopState::No,
            expected: 0,
            holds_requests: false,
            has_abandoned_in_hand: false,
            replies: Lane::default(),
            task: None,
        }
    }
}

/// Whether the instance is to finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopState {
    No,
    Asked,
    Told,
}

/// Tasks to wake outside the lock, since a waker may be anybody's code. Nearly always it is one.
#[derive(Debug)]
#[must_use = "nobody is woken"]
pub(super) struct Wakers {
    pub(super) first: Option<Waker>,
    pub(super) others: Vec<Waker>,
}

impl Wakers {
    pub(super) fn wake(self) {
        self.first.into_iter().chain(self.others).for_each(Waker::wake);
    }
}

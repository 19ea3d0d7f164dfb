//! The readers of an inbox, each with its own state, and the seats where they serve.

use std::task::Waker;

use super::lane::Lane;
use crate::{id::ReaderId, message::Reply};

/// The place of a peer that serves an inbox, alone or beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat(pub(super) usize);

impl Seat {
    /// The seat of every inbox.
    pub const FIRST: Self = Self(0);
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SeatState {
    /// Gets requests and events. It may have ended.
    pub(super) current: ReaderId,
    pub(super) refuses: bool,
}

#[derive(Debug)]
pub(super) struct InboxReader {
    pub(super) id: ReaderId,
    pub(super) stop: StopState,
    /// Replies still to come.
    pub(super) expected: u32,
    pub(super) holds_requests: bool,
    /// The sender of a request in hand may wait no more.
    pub(super) has_abandoned_in_hand: bool,
    pub(super) replies: Lane<Reply>,
    /// Wakes the one task in which it waits.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopState {
    No,
    Asked,
    Told,
}

//! What a reader asks of its inbox, and what it gets.

use std::task::Waker;

use crate::message::Incoming;

/// What a look into the inbox found.
#[derive(Debug)]
pub enum Taken {
    /// The instance is to finish.
    Stop,
    /// Nothing, for now.
    Empty,
    /// The next message.
    Message(Incoming),
}

/// How to look for a message.
#[derive(Clone, Copy, Debug)]
pub struct TakeOptions<'w> {
    /// Or only for what comes before events.
    pub events: bool,
    /// Whether to hold requests from now on; none: as before.
    pub hold: Option<bool>,
    /// The task to wake when there is something, if there is nothing now.
    pub task: Option<&'w Waker>,
}

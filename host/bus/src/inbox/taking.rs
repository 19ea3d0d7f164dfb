//! What a reader asks of its inbox, and what it gets.

use std::task::Waker;

use crate::message::Incoming;

/// What a look into the inbox found.
#[derive(Debug)]
pub enum Taken {
    /// The instance must finish.
    Stop,
    /// Nothing, for now.
    Empty,
    /// The next message.
    Message(Incoming),
}

/// How to take a message.
#[derive(Clone, Copy, Debug)]
pub struct TakeOptions<'w> {
    /// Whether to take events, too.
    pub events: bool,
    /// Whether to hold requests from now on; none leaves that as it is.
    pub hold: Option<bool>,
    /// The task to wake later, if there is nothing now.
    pub task: Option<&'w Waker>,
}

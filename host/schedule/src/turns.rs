//! The turns of busy extensions: one runs at a time.
//!
//! So a message waits for one slice, however many are busy.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    task::Waker,
};

use parking_lot::Mutex;

use crate::{look::Look, ticket::Ticket};

/// The busy extensions of one Main, in the order of their turns.
#[derive(Debug, Default)]
pub struct Turns {
    pub(crate) queue: Mutex<WaitingTurns>,
    /// The looks at timers and sockets, which all guests wait for.
    pub(crate) look: Arc<Look>,
}

#[derive(Debug, Default)]
pub(crate) struct WaitingTurns {
    pub(crate) waiting: VecDeque<Arc<Ticket>>,
    pub(crate) is_taken: bool,
}

impl Turns {
    pub(crate) fn join(&self, task: &Waker) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        ticket.register(task);
        let mut queue = self.queue.lock();
        queue.waiting.push_back(ticket.clone());
        if !queue.is_taken {
            queue.call_next(&self.look);
        }
        ticket
    }

    /// Gives up a place, or the turn.
    pub(crate) fn leave(&self, ticket: &Arc<Ticket>) {
        let mut queue = self.queue.lock();
        if ticket.has_turn.load(Ordering::Relaxed) {
            queue.call_next(&self.look);
        } else {
            queue.waiting.retain(|other| !Arc::ptr_eq(other, ticket));
        }
    }
}

impl WaitingTurns {
    fn call_next(&mut self, look: &Arc<Look>) {
        let next = self.waiting.pop_front();
        self.is_taken = next.is_some();
        if let Some(ticket) = next {
            ticket.has_turn.store(true, Ordering::Relaxed);
            if look.is_due() {
                look.wait(ticket);
            } else {
                ticket.call();
            }
        }
    }
}

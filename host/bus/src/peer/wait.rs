//! What a peer waits for with everything else stopped.

use std::sync::Arc;

use crate::{id::PeerId, queue::SharedQueue, room::Room};

#[derive(Clone, Debug)]
pub(crate) enum WaitTarget {
    /// One peer: its answer, or room in its inbox.
    Peer(PeerId),
    /// Room in a queue, which any of its takers can make.
    Queue(Arc<SharedQueue>),
}

/// One thing that a peer waits for; with a room, until there is some.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) on: WaitTarget,
    pub(crate) room: Option<Arc<Room>>,
}

impl Wait {
    pub(crate) fn answer(peer: PeerId) -> Self {
        Self { on: WaitTarget::Peer(peer), room: None }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.room.as_ref().is_some_and(|room| !room.is_waiting())
    }
}

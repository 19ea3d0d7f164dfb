//! The message bus: which peer may send what to which, where it waits, and how it ends.
//!
//! Owns peers with their inboxes, the routing table, subscriptions, topics, shared queues and requests under way. Knows
//! nothing of WebAssembly, files or configuration formats. Starts no task: the caller drives the one future needed,
//! [`Bus::run_deadlines`]. `docs/internals/messages.md` tells the way of a message, and what ends it.

mod bus;
mod channel;
mod deadlines;
mod id;
mod inbox;
mod message;
mod operations;
mod owners;
mod peer;
mod queue;
mod queues;
mod room;
mod subscriptions;
#[cfg(test)]
mod tests;
mod topics;
mod trace;
mod waiter;

pub use weir_names::{Error, HandlerError};

pub use self::{
    bus::{
        Bus, OnLoss,
        jobs::{Offering, Putting},
        publish::Publishing,
        requests::{PendingCall, Sending, SentCall, Target},
    },
    id::{InstanceId, MessageId, OperationId, PeerId},
    inbox::{EndedByCaller, Filling, Inbox, InboxLimits, LaneSettings, LaneStats, Seat, TakeOptions, Taken},
    message::{
        Carried, CarriedValues, Event, Incoming, Published, Receipt, Reply, Request, Responder, ValueTypes,
    },
    operations::OperationStats,
    peer::{Access, Peer, PeerLimits, PeerStats, Phase},
    queue::{JobReader, QueueSettings, QueuedJob, SharedQueue, taken::TakenJob},
    subscriptions::Subscription,
    trace::{OpenSpan, Parent, RecordedSpans, SpanOrigin},
    waiter::{Term, Waiter},
};

//! The message bus: who may say what to whom, where it waits, and how it ends.
//!
//! Owns the peers with their inboxes, the routing table, the subscriptions, the topics, the shared queues
//! and the requests under way. Knows nothing of WebAssembly, files or configuration formats, and starts no task: the one
//! future that it needs run, [`Bus::run_deadlines`], is its owner's to drive.

mod bus;
mod deadlines;
mod error;
mod id;
mod inbox;
mod loss;
mod message;
mod owners;
mod peer;
mod queue;
mod queues;
mod room;
mod subscriptions;
#[cfg(test)]
mod tests;
mod topics;
mod waiter;

pub use weir_names::{Error, HandlerError};

pub use self::{
    bus::{
        Bus,
        jobs::Putting,
        publish::Publishing,
        requests::{PendingCall, Sending, Target},
    },
    id::{MessageId, OperationId, PeerId, ReaderId},
    inbox::{Filling, Inbox, InboxLimits, LaneSettings, LaneStats, Seat, TakeOptions, Taken},
    loss::OnLoss,
    message::{Event, Incoming, Published, Receipt, Reply, Request, Responder},
    peer::{Access, Peer, PeerLimits, PeerStats, Phase},
    queue::{JobCounts, JobReader, QueueSettings, QueueStats, QueuedJob, SharedQueue, taken::TakenJob},
    subscriptions::{Subscription, SubscriptionStats},
    topics::TopicStats,
    waiter::{Term, Waiter},
};

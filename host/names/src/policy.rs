//! Overload policies: what happens to a message without room, in the operator's words.
//!
//! Each kind of message has its own type, so that no invalid policy can be expressed.

use std::fmt;

use serde::Serialize;

/// Defines the policies for one kind of message, each with the operator's word for it.
macro_rules! policies {
    (
        $(#[doc = $doc:literal])+
        $type:ident, $count:literal:
        $($(#[$of_policy:meta])+ $policy:ident = $word:literal,)+
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
        pub enum $type {
            $($(#[$of_policy])+ #[serde(rename = $word)] $policy,)+
        }

        impl $type {
            /// Every policy.
            pub const ALL: [Self; $count] = [$(Self::$policy),+];

            /// The operator's word for the policy.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$policy => $word),+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

policies! {
    /// What happens to an event without room.
    Policy, 5:
    /// The sender waits for room, until its deadline.
    Block = "block",
    /// The event is refused, and its sender is told.
    Reject = "reject",
    /// The oldest waiting events are lost.
    #[default]
    DropOldest = "drop-oldest",
    /// The event is lost.
    DropNewest = "drop-newest",
    /// Only the latest event of each topic waits. If that is too much, the oldest events are lost.
    Latest = "latest",
}

policies! {
    /// What happens to a job without room in its queue. There is no `latest`, since jobs have no topics.
    QueuePolicy, 4:
    /// The job is refused, and its sender is told.
    #[default]
    Reject = "reject",
    /// The sender waits for room, until its deadline.
    Block = "block",
    /// The oldest waiting jobs are lost.
    DropOldest = "drop-oldest",
    /// The job is lost.
    DropNewest = "drop-newest",
}

policies! {
    /// What happens to a request without room in the inbox. Requests are never lost.
    RequestPolicy, 2:
    /// The request is refused, and its sender is told.
    #[default]
    Reject = "reject",
    /// The sender waits for room, until its deadline.
    Block = "block",
}

impl From<QueuePolicy> for Policy {
    fn from(policy: QueuePolicy) -> Self {
        match policy {
            QueuePolicy::Reject => Self::Reject,
            QueuePolicy::Block => Self::Block,
            QueuePolicy::DropOldest => Self::DropOldest,
            QueuePolicy::DropNewest => Self::DropNewest,
        }
    }
}

impl From<RequestPolicy> for Policy {
    fn from(policy: RequestPolicy) -> Self {
        match policy {
            RequestPolicy::Reject => Self::Reject,
            RequestPolicy::Block => Self::Block,
        }
    }
}

//! What becomes of a message for which there is no room: the words that operators write and the bus
//! heeds.
//!
//! One type for each kind of message, so that a policy which a kind cannot have cannot be written.

use std::fmt;

use serde::Serialize;

/// What becomes of an event for which there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Its sender waits for room, until its deadline.
    Block,
    /// It is refused, and its sender hears so.
    Reject,
    /// The oldest that wait are lost for it.
    #[default]
    DropOldest,
    /// It is lost.
    DropNewest,
    /// Of each topic only the latest waits; where that is still too much, the oldest are lost.
    Latest,
}

/// What becomes of a job for which its queue has no room. Jobs have no topics, of which the latest could wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePolicy {
    /// It is refused, and its sender hears so.
    #[default]
    Reject,
    /// Its sender waits for room, until its deadline.
    Block,
    /// The oldest that wait are lost for it.
    DropOldest,
    /// It is lost.
    DropNewest,
}

/// What becomes of a request for which its receiver's inbox has no room. Requests are never lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestPolicy {
    /// It is refused, and its sender hears so.
    #[default]
    Reject,
    /// Its sender waits for room, until its deadline.
    Block,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 5] = [Self::Block, Self::Reject, Self::DropOldest, Self::DropNewest, Self::Latest];

    /// As an operator writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Reject => "reject",
            Self::DropOldest => "drop-oldest",
            Self::DropNewest => "drop-newest",
            Self::Latest => "latest",
        }
    }
}

impl QueuePolicy {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Reject, Self::Block, Self::DropOldest, Self::DropNewest];

    /// As an operator writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Policy::from(self).name()
    }
}

impl RequestPolicy {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::Reject, Self::Block];

    /// As an operator writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Policy::from(self).name()
    }
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

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for QueuePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for RequestPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! Overload policies: what happens to a message without room, in the operator's words.
//!
//! Each kind of message has its own type, so that no invalid policy can be expressed.

use std::fmt;

use serde::Serialize;

/// What happens to an event without room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Its sender waits for room, until its deadline.
    Block,
    /// It is refused, and its sender is told.
    Reject,
    /// The oldest waiting events are lost.
    #[default]
    DropOldest,
    /// It is lost.
    DropNewest,
    /// Only the latest event of each topic waits. If that is too much, the oldest are lost.
    Latest,
}

/// What happens to a job without room in its queue. There is no `latest`, since jobs have no topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePolicy {
    /// It is refused, and its sender is told.
    #[default]
    Reject,
    /// Its sender waits for room, until its deadline.
    Block,
    /// The oldest waiting jobs are lost.
    DropOldest,
    /// It is lost.
    DropNewest,
}

/// What happens to a request without room in the inbox. Requests are never lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestPolicy {
    /// It is refused, and its sender is told.
    #[default]
    Reject,
    /// Its sender waits for room, until its deadline.
    Block,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 5] = [Self::Block, Self::Reject, Self::DropOldest, Self::DropNewest, Self::Latest];

    /// The operator's word for it.
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

    /// The operator's word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Policy::from(self).name()
    }
}

impl RequestPolicy {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::Reject, Self::Block];

    /// The operator's word for it.
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

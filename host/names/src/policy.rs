//! What becomes of a message for which there is no room: the words that operators write and the bus
//! heeds.

use std::fmt;

use serde::Serialize;

/// What becomes of a message for which there is no room.
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

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! Topics that an extension or a peer may subscribe to, and their room.

use std::{ops::RangeInclusive, str::FromStr};

use weir_names::{NameError, Policy, TopicPattern};

use super::{
    key::Table,
    kind::{Kind, number, one_of, text, texts_and_tables},
    policy,
    sections::TOPIC,
    shape::Shape,
};
use crate::keys;

const MESSAGES: RangeInclusive<u32> = 1..=1_000_000;

/// 1 KiB to 1 GiB.
const BYTES: Shape = Shape::Size(1 << 10..=1 << 30);

/// Topics that an extension or a peer may subscribe to, and the bounds of each subscription.
///
/// From a [`TopicPattern`] or its text: the default policy and the room of the whole inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscribeGrant {
    /// The topics.
    pub topic: TopicPattern,
    /// What happens to an event without room. Default: [`Policy::DropOldest`].
    pub policy: Policy,
    /// Waiting events of a subscription: 1 to 1,000,000, and at most
    /// `inbox.messages` of its limits, the value of `None`.
    pub messages: Option<u32>,
    /// Their size in bytes: 1 KiB to 1 GiB, and at most `inbox.bytes` of its limits, the value of `None`.
    pub bytes: Option<u64>,
}

impl From<TopicPattern> for SubscribeGrant {
    fn from(topic: TopicPattern) -> Self {
        Self { topic, policy: Policy::default(), messages: None, bytes: None }
    }
}

impl FromStr for SubscribeGrant {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse().map(TopicPattern::into)
    }
}

impl Table for SubscribeGrant {
    keys! {
        SubscribeGrant;
        /// Topics that the extension or the peer may subscribe to.
        "topic" topic = text(TOPIC, str::parse), required(TOPIC);
        /// What happens to an event that finds no room: [each policy](operators.md#when-there-is-no-room).
        "policy" policy = one_of(Policy::ALL.map(Policy::name), policy::of_events);
        /// Events of one subscription that may wait. Not more than `inbox.messages` of the extension or the peer.
        "messages" messages = number(Shape::counts(MESSAGES)), default("`inbox.messages`");
        /// Bytes of them. Not more than `inbox.bytes` of the extension or the peer.
        "bytes" bytes = number(BYTES), default("`inbox.bytes`");
    }
}

/// Topics to subscribe to.
pub(super) fn subscribes() -> Kind<Vec<SubscribeGrant>> {
    texts_and_tables(TOPIC, str::parse, || ">".parse().ok())
}

//! Topics that an extension or a peer may subscribe to, and their room.

use std::{ops::RangeInclusive, str::FromStr};

use weir_names::{NameError, Policy, TopicPattern};

use super::shape::Shape;

pub(super) const MESSAGES: RangeInclusive<u32> = 1..=1_000_000;

/// 1 KiB to 1 GiB.
pub(super) const BYTES: Shape = Shape::Size(1 << 10..=1 << 30);

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

impl SubscribeGrant {
    pub(super) fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let messages = Shape::counts(MESSAGES);
        let is_wrong = |shape: &Shape, value: Option<u64>| value.is_some_and(|value| !shape.has(value));
        [("messages", messages, self.messages.map(u64::from)), ("bytes", BYTES, self.bytes)]
            .into_iter()
            .filter(|(_, shape, value)| is_wrong(shape, *value))
            .map(|(key, shape, _)| (key, shape.to_string()))
            .collect()
    }
}

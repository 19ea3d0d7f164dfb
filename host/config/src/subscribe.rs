//! What an extension may subscribe to, and what may wait for it of that.

use std::{ops::RangeInclusive, str::FromStr};

use weir_names::{NameError, Policy, TopicPattern};

use super::shape::Shape;

pub(super) const MESSAGES: RangeInclusive<u32> = 1..=1_000_000;

/// 1 KiB to 1 GiB.
pub(super) const BYTES: Shape = Shape::Size(1 << 10..=1 << 30);

/// Topics that an extension may subscribe to, and how its subscriptions to them are bounded.
///
/// Made from a [`TopicPattern`], or from its text, it has the default policy and the whole inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscribeGrant {
    /// The topics.
    pub topic: TopicPattern,
    /// What becomes of an event for which there is no room, at first [`Policy::DropOldest`].
    pub policy: Policy,
    /// Events of one subscription that may wait: 1 to 1,000,000, and not more than
    /// [`Limits::inbox_messages`](super::Limits::inbox_messages). None: as many.
    pub messages: Option<u32>,
    /// Bytes of them: 1 KiB to 1 GiB, and not more than [`Limits::inbox_bytes`](super::Limits::inbox_bytes).
    /// None: as many.
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
    /// Every value that is out of its range: the key and what it must be.
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

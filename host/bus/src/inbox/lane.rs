//! Requests or replies that wait, bounded by count and by bytes.

use super::InboxLimits;
use crate::{
    channel::Channel,
    message::{ENVELOPE_BYTES, Reply, Request},
};
use weir_names::Error;

#[derive(Debug)]
pub(super) struct Lane<T> {
    pub(super) items: Channel<T>,
    pub(super) bytes: u64,
}

impl<T: Weigh> Lane<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn has_room(&self, item: &T, limits: InboxLimits) -> bool {
        u32::try_from(self.items.len()).is_ok_and(|count| count < limits.messages)
            && self.has_bytes(item, limits)
    }

    /// Whether the item fits by its bytes. An empty lane takes any item: one that is too large was refused before.
    pub(super) fn has_bytes(&self, item: &T, limits: InboxLimits) -> bool {
        self.items.is_empty() || self.bytes + item.bytes() <= limits.bytes
    }

    pub(super) fn push_back(&mut self, item: T) {
        self.bytes += item.bytes();
        self.items.push_back(item);
    }

    pub(super) fn push_front(&mut self, item: T) {
        self.bytes += item.bytes();
        self.items.push_front(item);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.bytes -= item.bytes();
        Some(item)
    }

    /// Keeps the items that satisfy `keep`, in order. Returns the rest for the caller to drop.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) -> Vec<T> {
        let dropped = self.items.extract(|item| !keep(item));
        self.bytes -= dropped.iter().map(Weigh::bytes).sum::<u64>();
        dropped
    }
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { items: Channel::default(), bytes: 0 }
    }
}

/// What a message counts against its lane's bytes.
pub(super) trait Weigh {
    fn bytes(&self) -> u64;
}

impl Weigh for Reply {
    fn bytes(&self) -> u64 {
        let length = match &self.outcome {
            Ok(payload) => payload.len(),
            Err(Error::Handler(error)) => error.code.len() + error.message.len(),
            // Texts of Main, which are short.
            Err(_) => 0,
        };
        ENVELOPE_BYTES + length as u64
    }
}

impl Weigh for Request {
    fn bytes(&self) -> u64 {
        let values = self.values.as_ref().map_or(0, |values| values.bytes());
        ENVELOPE_BYTES + self.payload.len() as u64 + values
    }
}

//! Events, as handlers get them and as publishers hear of them.

use crate::host::WitReceipt;

/// An event, with what Main says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<T> {
    /// The topic that it was published under.
    pub topic: String,
    /// Its place among the events that matched this subscription, from 1, counting those that were
    /// lost.
    pub sequence: u64,
    /// How many events of this subscription were lost just before this one.
    pub lost: u64,
    /// What was published.
    pub payload: T,
}

/// Who got an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Subscriptions in whose inbox it is.
    pub delivered: u32,
    /// Subscriptions that lost it, or an older one in its place, because their inbox was full.
    pub shed: u32,
}

impl From<WitReceipt> for Receipt {
    fn from(WitReceipt { delivered, shed }: WitReceipt) -> Self {
        Self { delivered, shed }
    }
}

//! Events as handlers get them, and receipts for publishers.

use crate::host::WitReceipt;

/// An event, with the envelope that Main stamped on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<T> {
    /// The topic that it was published under.
    pub topic: String,
    /// Rises with each event of the topic. 0 for an event published to this extension alone.
    pub sequence: u64,
    /// Events of this subscription that were lost just before this one.
    pub lost: u64,
    /// Whether it was published before this instance subscribed: it is the last value of a topic that Main
    /// retains.
    pub retained: bool,
    /// The published value.
    pub payload: T,
}

/// Counts of the subscriptions that an event reached or missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Subscriptions with the event in their inbox.
    pub delivered: u32,
    /// Events lost because an inbox was full: this one, or older ones in its place.
    pub shed: u32,
    /// Full subscriptions that refused it, or for which the publisher waited in vain.
    pub refused: u32,
}

impl From<WitReceipt> for Receipt {
    fn from(WitReceipt { delivered, shed, refused }: WitReceipt) -> Self {
        Self { delivered, shed, refused }
    }
}

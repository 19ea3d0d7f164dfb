//! Events, as handlers get them and as publishers hear of them.

use crate::host::WitReceipt;

/// An event, with what Main says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<T> {
    /// The topic that it was published under.
    pub topic: String,
    /// Its place among the events of its topic, whoever gets them: greater than that of the one before.
    /// 0 if it was published to this extension alone.
    pub sequence: u64,
    /// How many events of this subscription were lost just before this one.
    pub lost: u64,
    /// Whether it was published before this instance subscribed: the last value of a topic that the
    /// operator has Main retain.
    pub retained: bool,
    /// What was published.
    pub payload: T,
}

/// Who got an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Subscriptions in whose inbox it is.
    pub delivered: u32,
    /// Events that were lost for want of room in an inbox: this one, or older ones in its place.
    pub shed: u32,
    /// Subscriptions that refused it for want of room, or for which it waited in vain.
    pub refused: u32,
}

impl From<WitReceipt> for Receipt {
    fn from(WitReceipt { delivered, shed, refused }: WitReceipt) -> Self {
        Self { delivered, shed, refused }
    }
}

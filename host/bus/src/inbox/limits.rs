//! How much an inbox may hold, and how full it is.

/// How much may wait in a lane.
#[derive(Clone, Copy, Debug)]
pub struct InboxLimits {
    /// Messages that may wait.
    pub messages: u32,
    /// Bytes that may wait, envelopes included.
    pub bytes: u64,
}

/// How full an inbox is, as its limits count: of the parts with bounds of their own, the fuller one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// Messages that wait.
    pub messages: u64,
    /// Bytes that wait, envelopes included.
    pub bytes: u64,
}

//! A queue as it is shown, and what became of its jobs.

use weir_names::QueueName;

use super::settings::QueueSettings;

/// A queue as it is shown.
#[derive(Clone, Debug)]
pub struct QueueStats {
    pub name: QueueName,
    pub settings: QueueSettings,
    pub dead_letter: Option<QueueName>,
    pub is_configured: bool,
    pub waiting: u64,
    pub in_hand: u64,
    pub bytes: u64,
    /// Senders that wait for room.
    pub blocked: u64,
    /// Readers that wait for a job.
    pub readers: u64,
    pub counts: JobCounts,
    pub put_rate: u64,
    pub done_rate: u64,
}

/// What became of the jobs of a queue so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    pub put: u64,
    pub delivered: u64,
    pub done: u64,
    pub returned: u64,
    /// Delivered too often.
    pub dead: u64,
    /// Lost for want of room.
    pub shed: u64,
    pub refused: u64,
}

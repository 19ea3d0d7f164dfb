//! A queue as it is shown, and what became of its jobs.

use weir_names::QueueName;

use super::settings::QueueSettings;

/// A queue as it is shown.
#[derive(Clone, Debug)]
pub struct QueueStats {
    /// Its name, as configured.
    pub name: QueueName,
    /// What the operator set.
    pub settings: QueueSettings,
    /// The queue that gets its dead jobs, if it has one.
    pub dead_letter: Option<QueueName>,
    /// Whether it takes jobs; it may hold some when it no longer does.
    pub is_configured: bool,
    /// Jobs that wait for a reader.
    pub waiting: u64,
    /// Jobs that readers have and have not finished.
    pub in_hand: u64,
    /// Bytes of the jobs that wait and those in hand, envelopes included.
    pub bytes: u64,
    /// Senders that wait for room.
    pub blocked: u64,
    /// Readers that wait for a job.
    pub readers: u64,
    /// What became of its jobs so far.
    pub counts: JobCounts,
    /// Jobs put in a second.
    pub put_rate: u64,
    /// Jobs done in a second.
    pub done_rate: u64,
}

/// What became of the jobs of a queue so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Put, and not refused.
    pub put: u64,
    /// Given to a reader, each time.
    pub delivered: u64,
    /// Finished.
    pub done: u64,
    /// Given back unfinished, each time.
    pub returned: u64,
    /// Delivered too often.
    pub dead: u64,
    /// Lost for want of room.
    pub shed: u64,
    /// Turned away for want of room.
    pub refused: u64,
}

//! The figures of a queue and its jobs.

use weir_names::QueueName;

use super::settings::QueueSettings;

/// The figures of a queue.
#[derive(Clone, Debug)]
pub struct QueueStats {
    /// Its name, as configured.
    pub name: QueueName,
    /// The operator's settings.
    pub settings: QueueSettings,
    /// The queue that gets its dead jobs, if it has one.
    pub dead_letter: Option<QueueName>,
    /// Whether it takes jobs. One that does not may still hold some.
    pub is_configured: bool,
    /// Jobs that wait for a reader.
    pub waiting: u64,
    /// Jobs that readers hold unfinished.
    pub in_hand: u64,
    /// Bytes of waiting jobs and jobs in hand, envelopes included.
    pub bytes: u64,
    /// Senders that wait for room.
    pub blocked: u64,
    /// Readers that wait for a job.
    pub readers: u64,
    /// What happened to its jobs so far.
    pub counts: JobCounts,
    /// Jobs put in a second.
    pub put_rate: u64,
    /// Jobs done in a second.
    pub done_rate: u64,
}

/// What happened to the jobs of a queue so far.
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

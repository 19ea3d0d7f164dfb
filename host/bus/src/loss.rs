//! Losses are reported at 1, 2, 4, 8 and so on, so a flood makes few log lines.

/// Called with the peer or queue that had no room, and its total losses.
pub type OnLoss = Box<dyn Fn(&str, u64) + Send + Sync>;

/// Whether to report losses that grew from `before` to `after`.
pub(crate) fn is_to_be_told(before: u64, after: u64) -> bool {
    after.checked_ilog2() != before.checked_ilog2()
}

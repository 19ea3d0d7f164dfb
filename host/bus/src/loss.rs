//! How losses are told: at 1, 2, 4, 8 and so on, so that a flood of them is a handful of lines.

/// Told which peer or queue had no room for messages, and how many those were in all.
pub type OnLoss = Box<dyn Fn(&str, u64) + Send + Sync>;

/// Whether losses are to be told when they have grown from `before` to `after`.
pub(crate) fn is_to_be_told(before: u64, after: u64) -> bool {
    after.checked_ilog2() != before.checked_ilog2()
}

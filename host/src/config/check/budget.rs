//! What the limits of all extensions come to, against the memory that Main may use.

use bytesize::ByteSize;

use super::Parts;
use crate::config::{ExtensionConfig, ReloadMode, error::ConfigError, shape::bytes};

/// As many extensions as are shown, those with the largest sums.
const SHOWN_MAX: usize = 20;

impl Parts<'_> {
    /// Of extensions that start with Main or later: any of them may be told to.
    pub(super) fn memory_budget(&self) -> Option<ConfigError> {
        let budget = self.config.main.memory_budget?;
        let total = sum(self.extensions().map(|(_, extension)| extension));
        if total <= u128::from(budget) {
            return None;
        }
        let (mut allowed, mut comes_to) = (shown(budget.into()), shown(total));
        if allowed == comes_to {
            (allowed, comes_to) = (format!("{budget} B"), format!("{total} B"));
        }
        let message = format!(
            "`main.memory-budget` is {allowed}, but the limits of all extensions come to {comes_to}: \
             raise it, or lower theirs"
        );
        let place = self.places.memory_budget.clone();
        let error = ConfigError::new("main.memory-budget", message, place);

        let mut sorted: Vec<_> = self.extensions().collect();
        sorted.sort_by_key(|(_, extension)| std::cmp::Reverse(extension.memory_sum()));
        let (largest, rest) = sorted.split_at(SHOWN_MAX.min(sorted.len()));
        let error = largest.iter().fold(error, |error, (index, extension)| {
            error.detail(self.place(*index, |at| Some(&at.id)), parts(extension))
        });
        if rest.is_empty() {
            return Some(error);
        }
        let others = sum(rest.iter().map(|(_, extension)| *extension));
        Some(error.detail(None, format!("{} more come to {}", rest.len(), shown(others))))
    }
}

/// Wider than the sums, of which there may be many.
fn sum<'c>(extensions: impl Iterator<Item = &'c ExtensionConfig>) -> u128 {
    extensions.map(|extension| u128::from(extension.memory_sum())).sum()
}

/// As `weir limits` shows sums.
fn shown(total: u128) -> String {
    u64::try_from(total)
        .map_or_else(|_| format!("{total} B"), |total| ByteSize::b(total).display().iec().to_string())
}

fn parts(extension: &ExtensionConfig) -> String {
    let limits = &extension.limits;
    let instance = format!("`memory` {} + `stack` {}", bytes(limits.memory), bytes(limits.stack));
    let instances = match extension.reload {
        ReloadMode::StopFirst => instance,
        ReloadMode::Overlap => format!("2 × ({instance})"),
    };
    format!(
        "`{}` comes to {}: {instances} + 2 × `inbox.bytes` {}",
        extension.id,
        shown(extension.memory_sum().into()),
        bytes(limits.inbox_bytes)
    )
}

//! What is said again and again is said at the 1st, 2nd, 4th, 8th time and so on.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Causes that are counted apart. Those of strangers are without number, so further ones are counted together, and the
/// bridge's own are counted elsewhere.
const CAUSES_MAX: usize = 256;

/// How often each thing has happened.
#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<HashMap<String, u64>>);

impl Times {
    /// Counts, and gives the count if it is worth a line.
    pub(crate) fn once_more(&self, cause: &str) -> Option<u64> {
        let mut times = self.0.lock();
        let is_known = times.len() < CAUSES_MAX || times.contains_key(cause);
        let count = times.entry(if is_known { cause } else { "" }.to_owned()).or_default();
        *count += 1;
        count.is_power_of_two().then_some(*count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_a_few_lines() {
        let times = Times::default();
        let said = (0..1000).filter(|_| times.once_more("hall").is_some()).count();
        assert_eq!(said, 10);
        assert_eq!(times.once_more("attic"), Some(1));
    }

    #[test]
    fn causes_without_number_are_counted_together() {
        let times = Times::default();
        let said = (0..100_000).filter(|cause| times.once_more(&cause.to_string()).is_some()).count();
        assert!(said < 300, "{said}");
    }
}

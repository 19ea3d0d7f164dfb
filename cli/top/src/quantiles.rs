//! Quantiles of the requests that ended between two looks, from histograms that only grow.

use crate::answers::Counts;

/// How long the requests of a provider took, by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    buckets: Vec<u64>,
}

/// The upper bound of the bucket that a quantile lies in.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Quantile {
    /// The quantile is at most this many seconds.
    Within(f64),
    /// The quantile is longer than this, the longest bound, in seconds.
    Above(f64),
}

impl Quantile {
    /// Returns a number of seconds for sorting and drawing.
    pub(crate) fn seconds(self) -> f64 {
        match self {
            // Twice the longest bound is above all other quantiles.
            Self::Above(bound) => bound * 2.0,
            Self::Within(bound) => bound,
        }
    }
}

impl Interval {
    /// Returns the requests that were added to `before`. If a count is less than before, the operation was counted
    /// anew, and all its requests are new.
    pub(crate) fn between(before: &Counts, now: &Counts) -> Self {
        let mut sum = Self::default();
        for (operation, buckets) in now {
            let before = before.get(operation).map(Vec::as_slice).unwrap_or_default();
            let is_anew =
                before.len() > buckets.len() || before.iter().zip(buckets).any(|(old, new)| old > new);
            let before = if is_anew { &[] } else { before };
            sum.buckets.resize(sum.buckets.len().max(buckets.len()), 0);
            let old = before.iter().copied().chain(std::iter::repeat(0));
            for ((total, new), old) in sum.buckets.iter_mut().zip(buckets).zip(old) {
                *total = total.saturating_add(new.saturating_sub(old));
            }
        }
        sum
    }

    /// Returns the bound within which `percent` of a hundred requests were answered. `None` without requests.
    pub(crate) fn quantile(&self, percent: u64, bounds: &[f64]) -> Option<Quantile> {
        let total = self.buckets.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let rank = u128::from(total).saturating_mul(u128::from(percent)).div_ceil(100);
        let mut seen = 0_u128;
        let bucket = self.buckets.iter().position(|count| {
            seen += u128::from(*count);
            *count > 0 && seen >= rank
        })?;
        match (bounds.get(bucket), bounds.last()) {
            (Some(bound), _) => Some(Quantile::Within(*bound)),
            (None, Some(longest)) => Some(Quantile::Above(*longest)),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [f64; 3] = [0.001, 0.01, 0.1];

    fn counts(of: &[(&str, &[u64])]) -> Counts {
        of.iter().map(|(name, buckets)| (("a@1".to_owned(), (*name).to_owned()), buckets.to_vec())).collect()
    }

    #[test]
    fn a_quantile_is_of_the_requests_since_the_look_before() {
        let before = counts(&[("get", &[1000, 0, 0, 0])]);
        let now = counts(&[("get", &[1001, 98, 1, 0])]);
        let interval = Interval::between(&before, &now);
        assert_eq!(interval.quantile(50, &BOUNDS), Some(Quantile::Within(0.01)));
        assert_eq!(interval.quantile(99, &BOUNDS), Some(Quantile::Within(0.01)));
        assert_eq!(interval.quantile(100, &BOUNDS), Some(Quantile::Within(0.1)));
    }

    #[test]
    fn operations_of_a_provider_count_together() {
        let now = counts(&[("get", &[1, 0, 0, 0]), ("set", &[0, 0, 3, 0])]);
        let interval = Interval::between(&Counts::new(), &now);
        assert_eq!(interval.quantile(50, &BOUNDS), Some(Quantile::Within(0.1)));
    }

    #[test]
    fn the_last_bucket_has_no_bound() {
        let interval = Interval::between(&Counts::new(), &counts(&[("get", &[0, 0, 0, 1])]));
        let slow = interval.quantile(50, &BOUNDS).unwrap();
        assert_eq!(slow, Quantile::Above(0.1));
        assert!(slow.seconds() > 0.1);
    }

    #[test]
    fn without_requests_there_is_no_quantile() {
        let same = counts(&[("get", &[5, 5, 5, 5])]);
        assert_eq!(Interval::between(&same, &same).quantile(99, &BOUNDS), None);
        assert_eq!(Interval::default().quantile(99, &[]), None);
    }

    #[test]
    fn counts_that_begin_anew_give_no_absurd_numbers() {
        let before = counts(&[("get", &[100, 100, 100, 100])]);
        let now = counts(&[("get", &[0, 2, 0, 0])]);
        let interval = Interval::between(&before, &now);
        assert_eq!(interval, Interval { buckets: vec![0, 2, 0, 0] });
        let most = counts(&[("get", &[u64::MAX; 4]), ("set", &[u64::MAX; 4])]);
        assert!(Interval::between(&Counts::new(), &most).quantile(99, &BOUNDS).is_some());
    }
}

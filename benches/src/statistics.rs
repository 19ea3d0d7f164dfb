//! Statistics of many measured times.

use std::time::Duration;

/// Times of one round, in order.
#[derive(Clone, Debug)]
pub(crate) struct Sorted(Vec<Duration>);

impl Sorted {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The least time that this percentage of all does not exceed, in microseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(f64::NAN, |time| microseconds(*time))
    }
}

/// The summary of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    /// The median of the rounds' medians.
    pub(crate) p50: f64,
    /// The median of the rounds' 99th percentiles.
    pub(crate) p99: f64,
    pub(crate) rounds: Option<Rounds>,
    pub(crate) max: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rounds {
    /// The greatest 99th percentile of a round.
    pub(crate) p99_worst: f64,
    /// That less the least.
    pub(crate) p99_spread: f64,
}

impl Summary {
    /// Of at least one round.
    pub(crate) fn of(rounds: &[Sorted]) -> Self {
        let percentiles = |percent| rounds.iter().map(move |round| round.percentile(percent));
        let p99_worst = greatest(percentiles(99));
        let p99_spread = p99_worst - percentiles(99).fold(f64::INFINITY, f64::min);
        Self {
            p50: median(percentiles(50).collect()),
            p99: median(percentiles(99).collect()),
            rounds: (rounds.len() > 1).then_some(Rounds { p99_worst, p99_spread }),
            max: greatest(percentiles(100)),
        }
    }
}

/// The middle value, or the upper of the two middle ones.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The distance between the quartiles, as a part of the median. None for a single value.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let quartiles = sorted.get(sorted.len() / 4).zip(sorted.get(sorted.len() * 3 / 4));
    let (first, third) = quartiles.filter(|_| values.len() > 1)?;
    let middle = median(sorted.clone());
    Some((third - first) / middle).filter(|spread| spread.is_finite())
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(micros: impl IntoIterator<Item = u64>) -> Sorted {
        Sorted::new(micros.into_iter().map(Duration::from_micros).collect())
    }

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let hundred = round((1..=100).rev());
        assert_eq!([50, 99, 100].map(|percent| hundred.percentile(percent)), [50.0, 99.0, 100.0]);
        assert_eq!([50, 99, 100].map(|percent| round([7]).percentile(percent)), [7.0; 3]);
        assert!(round([]).percentile(50).is_nan());
    }

    #[test]
    fn one_round_out_of_line_moves_the_spread_and_not_the_median() {
        let summary = Summary::of(&[round([1, 2, 3]), round([2, 3, 4]), round([50, 60, 70])]);
        let rounds = Some(Rounds { p99_worst: 70.0, p99_spread: 67.0 });
        assert_eq!(summary, Summary { p50: 3.0, p99: 4.0, rounds, max: 70.0 });
    }

    #[test]
    fn one_round_has_no_worst_and_no_spread() {
        assert_eq!(Summary::of(&[round([1, 2, 3])]).rounds, None);
        assert_eq!((spread(&[1.0]), spread(&[0.0, 0.0])), (None, None));
    }
}

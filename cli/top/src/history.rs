//! The last samples of one row, for its sparklines.

use std::collections::VecDeque;

/// Two minutes at the usual interval.
const MAX_SAMPLES: usize = 120;

/// What a row did between two looks. None: not known for that interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// From 0 to 1.
    pub(crate) cpu: Option<f64>,
    /// In bytes.
    pub(crate) memory: Option<f64>,
    /// Messages a second.
    pub(crate) messages: Option<f64>,
    /// In seconds.
    pub(crate) p99: Option<f64>,
    /// Messages that wait.
    pub(crate) inbox: Option<f64>,
    /// Messages lost in the interval.
    pub(crate) lost: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
}

impl History {
    pub(crate) fn add(&mut self, sample: Sample) {
        if self.samples.len() >= MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// One figure of all samples, oldest first.
    pub(crate) fn of(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<Option<f64>> {
        self.samples.iter().map(figure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_samples_are_kept() {
        let mut history = History::default();
        for number in 0..1000 {
            history.add(Sample { inbox: Some(f64::from(number)), ..Sample::default() });
        }
        let kept = history.of(|sample| sample.inbox);
        assert_eq!(kept.len(), MAX_SAMPLES);
        assert_eq!(kept.last(), Some(&Some(999.0)));
    }
}

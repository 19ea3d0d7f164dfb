//! One figure, as it is kept for the record, and the statistics behind it.

use std::{fs, io::Write, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// One result of a scenario, with what it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) scenario: String,
    /// The circumstances.
    pub(crate) case: String,
    pub(crate) metric: String,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
    /// The value of the baseline. A bound takes its place in figures that are compared with one.
    pub(crate) baseline: Option<f64>,
    /// `value` over `baseline`. `None` without a baseline, or if it is zero.
    pub(crate) ratio: Option<f64>,
    /// How the rounds differ: the distance between the quartiles of their ratios, or of their values without a
    /// baseline, as a part of the median.
    pub(crate) spread: Option<f64>,
    /// What `ratio` must not exceed, or `value` where there is no ratio.
    pub(crate) target: Option<f64>,
    /// What `ratio` had better not exceed, or `value` where there is no ratio.
    pub(crate) stretch: Option<f64>,
}

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    No,
    Yes,
    /// The stretch is met, too.
    Stretch,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Slices of fuel.
    #[serde(rename = "slices")]
    Slices,
    /// Hundredths of one processor's time.
    #[serde(rename = "percent")]
    Percent,
    /// How often in a second.
    #[serde(rename = "per second")]
    PerSecond,
    /// Mebibytes.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// Kibibytes.
    #[serde(rename = "KiB")]
    Kibibytes,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Things that are counted: threads, ticks, context switches, instructions.
    #[serde(rename = "count")]
    Count,
    /// How many times as much.
    #[serde(rename = "times")]
    Times,
}

impl Unit {
    /// The unit as people read it. Empty for a count.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Slices => "slices",
            Self::Percent => "%",
            Self::PerSecond => "/s",
            Self::Mebibytes => "MiB",
            Self::Kibibytes => "KiB",
            Self::Bytes => "B",
            Self::Count => "",
            Self::Times => "×",
        }
    }
}

impl Figure {
    /// A figure without a baseline.
    pub(crate) fn new(scenario: &str, case: impl Into<String>, metric: &str, unit: Unit, value: f64) -> Self {
        Self {
            scenario: scenario.to_owned(),
            case: case.into(),
            metric: metric.to_owned(),
            unit,
            value,
            baseline: None,
            ratio: None,
            spread: None,
            target: None,
            stretch: None,
        }
    }

    /// Sets the baseline, and the ratio unless the baseline is zero.
    pub(crate) fn beside(mut self, baseline: f64) -> Self {
        self.baseline = Some(baseline);
        self.ratio = (baseline != 0.0).then(|| self.value / baseline);
        self
    }

    /// The median of several rounds, and how they differ.
    pub(crate) fn of_rounds(
        scenario: &str,
        case: impl Into<String>,
        metric: &str,
        unit: Unit,
        rounds: &[f64],
    ) -> Self {
        let mut figure = Self::new(scenario, case, metric, unit, median(rounds.to_vec()));
        figure.spread = spread(rounds);
        figure
    }

    /// The median of what `of` says of each round, compared with the baseline's rounds, each of which was measured
    /// beside the round of the same place. Without rounds of the baseline, there is no comparison.
    pub(crate) fn compared<T>(
        (scenario, case): (&str, &str),
        metric: &str,
        unit: Unit,
        (rounds, baselines): (&[T], &[T]),
        of: impl Fn(&T) -> f64,
    ) -> Self {
        let [rounds, baselines] = [rounds, baselines].map(|all| all.iter().map(&of).collect::<Vec<_>>());
        let figure = Self::of_rounds(scenario, case, metric, unit, &rounds);
        if baselines.is_empty() { figure } else { figure.beside_rounds(&rounds, &baselines) }
    }

    /// Sets the median of the baseline's rounds as the baseline, and the spread to that of the rounds' ratios.
    pub(crate) fn beside_rounds(self, rounds: &[f64], baselines: &[f64]) -> Self {
        let ratios: Vec<_> = rounds.iter().zip(baselines).map(|(value, baseline)| value / baseline).collect();
        let mut figure = self.beside(median(baselines.to_vec()));
        figure.spread = spread(&ratios);
        figure
    }

    /// Sets what the ratio must not exceed, or the value where there is no ratio.
    pub(crate) fn at_most(mut self, target: impl Into<Option<f64>>) -> Self {
        self.target = target.into();
        self
    }

    /// Sets what the ratio had better not exceed, or the value where there is no ratio.
    pub(crate) fn stretch(mut self, stretch: impl Into<Option<f64>>) -> Self {
        self.stretch = stretch.into();
        self
    }

    /// Whether two figures measure the same thing.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.scenario, &self.case, &self.metric) == (&other.scenario, &other.case, &other.metric)
    }

    /// The number that the target bounds: the ratio, or the value where there is no ratio.
    pub(crate) fn reached(&self) -> f64 {
        self.ratio.unwrap_or(self.value)
    }

    /// Whether the target is met, if there is one.
    pub(crate) fn met(&self) -> Option<Met> {
        let holds = |bound: f64| self.reached() <= bound;
        self.target.map(|target| match self.stretch {
            Some(stretch) if holds(stretch) => Met::Stretch,
            _ if holds(target) => Met::Yes,
            _ => Met::No,
        })
    }

    /// Every number that was measured or calculated, but for the targets.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        [Some(self.value), self.baseline, self.ratio, self.spread].into_iter().flatten()
    }
}

/// Writes one JSON object a line.
pub(crate) fn write_json(out: &mut impl Write, figures: &[Figure]) -> Result<()> {
    for figure in figures {
        serde_json::to_writer(&mut *out, figure)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads what `write_json` wrote.
pub(crate) fn read_json(path: &Path) -> Result<Vec<Figure>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let figures = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    figures.with_context(|| format!("`{}` does not hold figures", path.display()))
}

/// Fails unless every one of these scenarios has figures, and all numbers are finite and not negative.
pub(crate) fn verify<'a>(scenarios: impl IntoIterator<Item = &'a str>, figures: &[Figure]) -> Result<()> {
    for scenario in scenarios {
        let some = figures.iter().any(|figure| figure.scenario == scenario);
        ensure!(some, "scenario `{scenario}` yielded no figures");
    }
    for figure in figures {
        let sound = figure.numbers().all(|number| number.is_finite() && number >= 0.0);
        ensure!(sound, "no such thing can be measured: {figure:?}");
    }
    Ok(())
}

/// Times of one round, in order.
#[derive(Clone, Debug)]
pub(crate) struct Sorted(Vec<Duration>);

impl Sorted {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The least time that this percentage of all does not exceed, in microseconds. NaN if there is no time.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        self.least(percent).map_or(f64::NAN, microseconds)
    }

    /// The least time that this percentage of all does not exceed. `None` if there is no time.
    pub(crate) fn least(&self, percent: usize) -> Option<Duration> {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied()
    }
}

/// The middle value, or the upper of the two middle ones. NaN without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn greatest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NAN, f64::max)
}

/// The distance between the quartiles, as a part of the median. `None` for a single value, and if the median is zero.
fn spread(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let quartiles = sorted.get(sorted.len() / 4).zip(sorted.get(sorted.len() * 3 / 4));
    let (first, third) = quartiles.filter(|_| values.len() > 1)?;
    Some((third - first) / median(sorted.clone())).filter(|spread| spread.is_finite())
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_object_on_one_line() {
        let figure =
            Figure::new("isolation", "beside 16", "p99", Unit::Microseconds, 3.0).beside(2.0).at_most(1.75);
        let mut out = Vec::new();
        write_json(&mut out, &[figure]).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"scenario\":\"isolation\",\"case\":\"beside 16\",\"metric\":\"p99\",\"unit\":\"us\",\
             \"value\":3.0,\"baseline\":2.0,\"ratio\":1.5,\"spread\":null,\"target\":1.75,\"stretch\":null}\n"
        );
    }

    #[test]
    fn rounds_are_compared_each_with_the_one_beside_it() {
        let (rounds, beside) = ([2.0, 4.0, 8.0, 16.0, 32.0], [1.0, 2.0, 4.0, 8.0, 16.0]);
        let figure = Figure::of_rounds("s", "c", "m", Unit::Times, &rounds);
        assert_eq!((figure.value, figure.spread), (8.0, Some(1.5)));
        let figure = Figure::compared(("s", "c"), "m", Unit::Times, (&rounds, &beside), |round| *round);
        assert_eq!((figure.ratio, figure.spread), (Some(2.0), Some(0.0)));
    }

    #[test]
    fn nothing_is_compared_with_a_baseline_of_zero() {
        assert_eq!(Figure::new("s", "c", "m", Unit::Slices, 1.0).beside(0.0).ratio, None);
    }

    #[test]
    fn a_target_bounds_the_ratio_or_else_the_value() {
        let figure = Figure::new("s", "c", "m", Unit::Times, 3.0).at_most(2.0).stretch(1.0);
        assert_eq!(figure.met(), Some(Met::No));
        assert_eq!(figure.clone().beside(2.0).met(), Some(Met::Yes));
        assert_eq!(figure.clone().beside(3.0).met(), Some(Met::Stretch));
        // As where nobody ticks, neither here nor there.
        let none = Figure::new("s", "c", "m", Unit::Count, 0.0).beside(0.0);
        assert_eq!((none.met(), none.at_most(0.0).met()), (None, Some(Met::Yes)));
    }

    #[test]
    fn a_scenario_without_figures_or_with_impossible_ones_is_found_out() {
        let figure = |value| Figure::new("a", "c", "m", Unit::Times, value);
        verify(["a"], &[figure(0.0)]).unwrap();
        for (scenarios, value) in [(&["a", "b"][..], 0.0), (&["a"], f64::NAN), (&["a"], -1.0)] {
            verify(scenarios.iter().copied(), &[figure(value)]).unwrap_err();
        }
        verify(["a"], &[figure(1.0).beside(f64::INFINITY)]).unwrap_err();
    }

    #[test]
    fn figures_are_read_as_they_were_written() {
        let figures = [1.0, 2.5].map(|value| Figure::new("s", "c", "m", Unit::Bytes, value).beside(2.0));
        let file = tempfile::NamedTempFile::new().unwrap();
        write_json(&mut file.as_file(), &figures).unwrap();
        assert_eq!(read_json(file.path()).unwrap(), figures);
        // A value that is no number is written as `null`.
        write_json(&mut file.as_file(), &[Figure::new("s", "c", "m", Unit::Bytes, f64::NAN)]).unwrap();
        read_json(file.path()).unwrap_err();
    }

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let round = |micros: Vec<u64>| Sorted::new(micros.into_iter().map(Duration::from_micros).collect());
        let hundred = round((1..=100).rev().collect());
        assert_eq!([50, 99, 100].map(|percent| hundred.percentile(percent)), [50.0, 99.0, 100.0]);
        assert_eq!([50, 99, 100].map(|percent| round(vec![7]).percentile(percent)), [7.0; 3]);
        assert!(round(Vec::new()).percentile(50).is_nan());
    }

    #[test]
    fn one_round_has_no_spread() {
        assert_eq!((spread(&[1.0]), spread(&[0.0, 0.0])), (None, None));
    }
}

//! One figure, in the form of the record.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::statistics::{median, spread};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) scenario: String,
    pub(crate) case: String,
    pub(crate) metric: String,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
    /// The baseline's value, or the bound of a figure that has one.
    pub(crate) baseline: Option<f64>,
    pub(crate) ratio: Option<f64>,
    /// The distance between the quartiles of the rounds, as a part of their median: of the ratios, or of the
    /// values without a baseline.
    pub(crate) spread: Option<f64>,
    /// The upper bound of `ratio`, or of `value` if there is no ratio.
    pub(crate) target: Option<f64>,
    /// A bound that is desired only.
    pub(crate) stretch: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    No,
    Yes,
    /// The stretch bound, too.
    Stretch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "ms")]
    Milliseconds,
    /// Slices of fuel.
    #[serde(rename = "slices")]
    Slices,
    /// Of one processor.
    #[serde(rename = "percent")]
    Percent,
    #[serde(rename = "per second")]
    PerSecond,
    #[serde(rename = "MiB")]
    Mebibytes,
    #[serde(rename = "KiB")]
    Kibibytes,
    #[serde(rename = "B")]
    Bytes,
    /// Counts: threads, ticks, context switches, instructions.
    #[serde(rename = "count")]
    Count,
    #[serde(rename = "times")]
    Times,
}

impl Unit {
    /// The unit for people.
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

    pub(crate) fn beside(mut self, baseline: f64) -> Self {
        self.baseline = Some(baseline);
        self.ratio = (baseline != 0.0).then(|| self.value / baseline);
        self
    }

    /// The median of several rounds, and their spread.
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

    /// Sets the median of the baseline's rounds. Each was measured beside the round of the same place.
    pub(crate) fn beside_rounds(self, rounds: &[f64], baselines: &[f64]) -> Self {
        let ratios: Vec<_> = rounds.iter().zip(baselines).map(|(value, baseline)| value / baseline).collect();
        let mut figure = self.beside(median(baselines.to_vec()));
        figure.spread = spread(&ratios);
        figure
    }

    /// Sets the bound of the ratio, or of the value if there is no ratio.
    pub(crate) fn at_most(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }

    pub(crate) fn stretch(mut self, stretch: f64) -> Self {
        self.stretch = Some(stretch);
        self
    }

    pub(crate) fn reached(&self) -> f64 {
        self.ratio.unwrap_or(self.value)
    }

    /// None without a target.
    pub(crate) fn met(&self) -> Option<Met> {
        let holds = |bound: f64| self.reached() <= bound;
        self.target.map(|target| match self.stretch {
            Some(stretch) if holds(stretch) => Met::Stretch,
            _ if holds(target) => Met::Yes,
            _ => Met::No,
        })
    }

    fn numbers(&self) -> impl Iterator<Item = f64> {
        [Some(self.value), self.baseline, self.ratio, self.spread].into_iter().flatten()
    }
}

pub(crate) fn write_json(out: &mut impl Write, figures: &[Figure]) -> Result<()> {
    for figure in figures {
        serde_json::to_writer(&mut *out, figure)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

pub(crate) fn read_json(path: &Path) -> Result<Vec<Figure>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let figures = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    figures.with_context(|| format!("`{}` does not hold figures", path.display()))
}

/// Fails unless each of these scenarios has figures, and all figures are plausible.
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
        let figure = figure.beside_rounds(&rounds, &beside);
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
        // As without ticks on either side.
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
        // A value that is not a number is written as `null`.
        write_json(&mut file.as_file(), &[Figure::new("s", "c", "m", Unit::Bytes, f64::NAN)]).unwrap();
        read_json(file.path()).unwrap_err();
    }
}

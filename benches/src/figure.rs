//! One figure, as it is kept for the record.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

/// What was measured, of what, and beside what.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) scenario: &'static str,
    /// Under which circumstances.
    pub(crate) case: String,
    pub(crate) metric: &'static str,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
    /// The same of the baseline; of a figure that has a bound, the bound.
    pub(crate) baseline: Option<f64>,
    /// `value` over `baseline`.
    pub(crate) ratio: Option<f64>,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Slices of fuel.
    #[serde(rename = "slices")]
    Slices,
    /// Of one processor.
    #[serde(rename = "percent")]
    Percent,
    /// How often in a second.
    #[serde(rename = "per second")]
    PerSecond,
    /// Mebibytes.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// How many times as much.
    #[serde(rename = "times")]
    Times,
}

impl Unit {
    /// As people read it.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Slices => "slices",
            Self::Percent => "%",
            Self::PerSecond => "/s",
            Self::Mebibytes => "MiB",
            Self::Times => "×",
        }
    }
}

impl Figure {
    /// A figure without a baseline.
    pub(crate) fn new(
        scenario: &'static str,
        case: impl Into<String>,
        metric: &'static str,
        unit: Unit,
        value: f64,
    ) -> Self {
        Self { scenario, case: case.into(), metric, unit, value, baseline: None, ratio: None }
    }

    /// Sets what it is compared with.
    pub(crate) fn beside(mut self, baseline: f64) -> Self {
        self.baseline = Some(baseline);
        self.ratio = (baseline != 0.0).then(|| self.value / baseline);
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_object_on_one_line() {
        let figure = Figure::new("isolation", "beside 16", "p99", Unit::Microseconds, 3.0).beside(2.0);
        let mut out = Vec::new();
        write_json(&mut out, &[figure]).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"scenario\":\"isolation\",\"case\":\"beside 16\",\"metric\":\"p99\",\"unit\":\"us\",\
             \"value\":3.0,\"baseline\":2.0,\"ratio\":1.5}\n"
        );
    }

    #[test]
    fn nothing_is_compared_with_a_baseline_of_zero() {
        assert_eq!(Figure::new("s", "c", "m", Unit::Slices, 1.0).beside(0.0).ratio, None);
    }
}

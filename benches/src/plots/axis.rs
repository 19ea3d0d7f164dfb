//! Axes: the place of a value, and the labelled values.

use std::ops::Range;

use plotters::coord::ranged1d::{BoldPoints, KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

const NAMED: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Coordinates {
    logarithmic: bool,
    range: Range<f64>,
    named: Vec<f64>,
}

impl Coordinates {
    /// From the least of these values to the greatest, each labelled. A linear axis starts at zero.
    pub(super) fn of_places(logarithmic: bool, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        values.dedup();
        let least = if logarithmic { values.first().copied().unwrap_or(1.0) } else { 0.0 };
        let range = least..values.last().copied().unwrap_or(least);
        Self { logarithmic, range, named: values }
    }

    /// With room for all these values, and labels at round ones.
    pub(super) fn of_amounts(logarithmic: bool, values: &[f64]) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        if !logarithmic {
            // There must be a range even without any figures.
            let range = 0.0..if greatest > 0.0 { 1.05 * greatest } else { 1.0 };
            let named = RangedCoordf64::from(range.clone()).key_points(BoldPoints(NAMED));
            return Self { logarithmic, range, named };
        }
        let round: Vec<_> =
            (-9..12).flat_map(|exponent| [1, 2, 5].map(|digit| power(digit, exponent))).collect();
        let start = round.iter().copied().rfind(|value| *value <= least).unwrap_or(least);
        let end = round.iter().copied().find(|value| *value >= greatest).unwrap_or(greatest);
        let named = round.into_iter().filter(|value| (start..=end).contains(value)).collect();
        Self { logarithmic, range: start..end, named }
    }

    fn place(&self, value: f64) -> f64 {
        if self.logarithmic { value.ln() } else { value }
    }
}

impl Ranged for Coordinates {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let places = self.place(self.range.start)..self.place(self.range.end);
        RangedCoordf64::from(places).map(&self.place(*value), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Other requests are for lines between the labels.
        if hint.weight().allow_light_points() { Vec::new() } else { self.named.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Coordinates {
    fn format_ext(&self, value: &f64) -> String {
        // Sums of tenths are not quite round.
        ((value * 1e9).round() / 1e9).to_string()
    }
}

fn power(digit: i32, exponent: i32) -> f64 {
    f64::from(digit) * 10f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(axis: &Coordinates) -> Vec<String> {
        axis.named.iter().map(|value| axis.format_ext(value)).collect()
    }

    #[test]
    fn a_logarithmic_axis_has_round_numbers_around_all_values() {
        let axis = Coordinates::of_amounts(true, &[0.7, 23.0]);
        assert_eq!(named(&axis), ["0.5", "1", "2", "5", "10", "20", "50"]);
        assert_eq!([0.5, 5.0, 50.0].map(|value| axis.map(&value, (0, 100))), [0, 50, 100]);
    }

    #[test]
    fn a_linear_axis_begins_at_nought() {
        let axis = Coordinates::of_amounts(false, &[0.4, 1.0]);
        assert_eq!([0.0, 0.525, 1.05].map(|value| axis.map(&value, (0, 100))), [0, 50, 100]);
        assert_eq!(named(&axis).first().map(String::as_str), Some("0"));
        assert_eq!(Coordinates::of_amounts(false, &[0.0]).range, 0.0..1.0);
    }

    #[test]
    fn every_place_is_named_once() {
        assert_eq!(named(&Coordinates::of_places(true, vec![10.0, 1.0, 10.0])), ["1", "10"]);
    }
}

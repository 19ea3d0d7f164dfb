//! Figures and names as short text, and sparklines in one line of it.

use ratatui::text::Span;
use weir_names::harmless;

use crate::{model::as_f64, quantiles::Quantile};

/// Shown for what is not known or not measured.
pub(super) const NOTHING: &str = "-";

/// The most bytes of a text, which is more than any terminal shows.
const MAX_TEXT: usize = 16 * 1024;

/// Escapes characters that move the cursor, forge a line, reverse text or are invisible.
pub(super) fn printable(text: &str) -> String {
    harmless(text, MAX_TEXT)
}

/// Returns the text in so many columns, with an ellipsis if it is longer.
pub(super) fn cut(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for character in text.chars() {
        cut.push(character);
        if Span::raw(cut.as_str()).width() >= width {
            cut.pop();
            break;
        }
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// Formats a number of bytes. Below 1024 PiB, it has at most eight characters.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut amount = as_f64(bytes) / 1024.0;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        // The larger unit is used from what would be rounded to 1024.
        if amount < 1023.5 {
            break;
        }
        (amount, unit) = (amount / 1024.0, larger);
    }
    format!("{} {unit}", short(amount))
}

/// Formats a share in percent, without the sign.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Formats a rate. Up to a million million, it has at most five characters.
pub(super) fn rate(rate: f64) -> String {
    count_of(rate, if rate == 0.0 { "0".to_owned() } else { short(rate) })
}

/// Formats a number of things. Up to a million million, it has at most five characters.
pub(super) fn count(number: u64) -> String {
    count_of(as_f64(number), number.to_string())
}

/// Formats a number. Up to ten thousand, it is the text `small`.
fn count_of(number: f64, small: String) -> String {
    match number {
        ..9_999.5 => small,
        ..999_500.0 => format!("{}k", short(number / 1e3)),
        ..999_500_000.0 => format!("{}M", short(number / 1e6)),
        _ => format!("{}G", short(number / 1e9)),
    }
}

/// Formats a quantile in at most six characters.
pub(super) fn time(quantile: Quantile) -> String {
    match quantile {
        Quantile::Within(bound) => seconds(bound),
        Quantile::Above(bound) => format!(">{}", seconds(bound)),
    }
}

pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.000_999_5 => format!("{}µs", short(seconds * 1e6)),
        ..0.9995 => format!("{}ms", short(seconds * 1e3)),
        _ => format!("{}s", short(seconds)),
    }
}

/// Formats a number with two digits or more.
fn short(number: f64) -> String {
    if number < 9.95 { format!("{number:.1}") } else { format!("{number:.0}") }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the last samples that fit, newest at the right, with a space for an unknown one. `least` is the smallest value
/// of a full bar, so that noise stays flat.
pub(super) fn spark(samples: &[Option<f64>], width: usize, least: f64) -> String {
    let shown = samples.get(samples.len().saturating_sub(width)..).unwrap_or_default();
    let full = maximum(shown).unwrap_or(0.0).max(least);
    let bars = shown.iter().map(|sample| sample.map_or(' ', |sample| bar(sample / full)));
    format!("{:>width$}", bars.collect::<String>())
}

/// Returns the largest sample.
pub(super) fn maximum(samples: &[Option<f64>]) -> Option<f64> {
    samples.iter().flatten().copied().reduce(f64::max)
}

fn bar(part: f64) -> char {
    // Each level that the part is above makes the bar one step higher.
    let levels = [0.0625, 0.1875, 0.3125, 0.4375, 0.5625, 0.6875, 0.8125];
    let level = levels.iter().filter(|level| part > **level).count();
    BARS.get(level).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let sizes = [0, 1023, 1024, 1_114_112, 1_048_575, 16 << 20, u64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.1 MiB", "1.0 MiB", "16 MiB", "16384 PiB"]);
        let rates = [0.0, 0.04, 1.0, 9.96, 9999.0, 10_000.0, 999_600.0, 2e9].map(rate);
        assert_eq!(rates, ["0", "0.0", "1.0", "10", "9999", "10k", "1.0M", "2.0G"]);
        let times = [1.024e-6, 0.000_393_216, 0.001_048_576, 0.025, 68.7].map(seconds);
        assert_eq!(times, ["1.0µs", "393µs", "1.0ms", "25ms", "69s"]);
        assert_eq!(time(Quantile::Above(68.7)), ">69s");
        assert_eq!([0, 9999, 12_345, 1_234_567].map(count), ["0", "9999", "12k", "1.2M"]);
        assert_eq!(percent(0.9714), "97.1");
    }

    #[test]
    fn a_long_text_is_cut_to_the_columns_that_there_are() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
        assert_eq!([cut("abc", 1), cut("abc", 0)], ["…", ""]);
    }

    #[test]
    fn the_newest_sample_is_at_the_right_and_the_largest_fills_the_line() {
        let samples = [Some(0.0), None, Some(1.0), Some(2.0), Some(4.0)];
        assert_eq!(spark(&samples, 6, 1.0), " ▁ ▃▅█");
        assert_eq!(spark(&samples, 2, 1.0), "▅█");
    }

    #[test]
    fn what_is_less_than_the_least_stays_low() {
        assert_eq!(spark(&[Some(0.001), Some(0.002)], 2, 1.0), "▁▁");
        assert_eq!(spark(&[Some(f64::NAN), None], 2, 0.0).chars().count(), 2);
    }
}

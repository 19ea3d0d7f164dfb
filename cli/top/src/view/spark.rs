//! Sparklines in one line of text.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last samples that fit, newest at the right. `least` is the smallest value of a full bar, so that noise stays
/// flat. A gap is what is not known.
pub(super) fn line(samples: &[Option<f64>], width: usize, least: f64) -> String {
    let shown = samples.get(samples.len().saturating_sub(width)..).unwrap_or_default();
    let full = most(shown).unwrap_or(0.0).max(least);
    let bars = shown.iter().map(|sample| sample.map_or(' ', |sample| bar(sample / full)));
    format!("{:>width$}", bars.collect::<String>())
}

/// The largest sample.
pub(super) fn most(samples: &[Option<f64>]) -> Option<f64> {
    samples.iter().flatten().copied().reduce(f64::max)
}

fn bar(part: f64) -> char {
    // The first bar that is not too short.
    let levels = [0.0625, 0.1875, 0.3125, 0.4375, 0.5625, 0.6875, 0.8125];
    let level = levels.iter().filter(|level| part > **level).count();
    BARS.get(level).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sample_is_at_the_right_and_the_largest_fills_the_line() {
        let samples = [Some(0.0), None, Some(1.0), Some(2.0), Some(4.0)];
        assert_eq!(line(&samples, 6, 1.0), " ▁ ▃▅█");
        assert_eq!(line(&samples, 2, 1.0), "▅█");
    }

    #[test]
    fn what_is_less_than_the_least_stays_low() {
        assert_eq!(line(&[Some(0.001), Some(0.002)], 2, 1.0), "▁▁");
        assert_eq!(line(&[Some(f64::NAN), None], 2, 0.0).chars().count(), 2);
    }
}

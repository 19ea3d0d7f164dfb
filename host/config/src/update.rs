//! The configuration of updates: when a new version of an extension is proven, and when it goes back.
//!
//! Owns the values. Knows nothing of measurements: the supervisor compares versions.

use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

use weir_names::CpuShare;

use super::{
    key::Table,
    kind::{Kind, flag, number, text},
    limits::Number,
    restart::WINDOW,
    shape::Shape,
};
use crate::keys;

const PROVE_FOR: RangeInclusive<Duration> = Duration::from_secs(1)..=*WINDOW.end();

const FACTOR: &str = "a factor from `1x` to `1000x`, as in `2x` or `1.5x`";

/// When a new version of an extension is proven, and when it goes back to the last proven one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateConfig {
    /// How long a new version runs until it is proven: 1 second to 7 days. Default: 10 minutes. Only time in which it
    /// runs counts.
    pub prove_for: Duration,
    /// Failures of a new version that are allowed until it is proven: 0 to 1,000. Default: 1. A version that does not
    /// come up goes back at once.
    pub max_failures: u32,
    /// Share of its requests that may fail: 0 % to 100 %. Default: 5 %. Errors that it answers with itself count only
    /// above the rate of the version before.
    pub max_error_rate: ErrorRate,
    /// Bound on the 99th percentile of its requests' durations, as a factor of that of the version before: 1 to 1,000.
    /// Default: 2. Differences under 1 ms do not count.
    pub max_latency: Factor,
    /// Bound on its linear memory, as a factor of that of the version before: 1 to 1,000. Default: 2. Differences under
    /// 1 MiB do not count.
    pub max_memory: Factor,
    /// Requests that each of the two versions needs before their figures are compared: 1 to 1,000,000. Default: 100.
    /// With fewer, failures alone decide.
    pub min_requests: u64,
    /// Whether going back by itself also restores what the extension had in its stores, if the version that comes back
    /// cannot read what is there. Default: no. What was written since is lost.
    pub data_too: bool,
}

impl Default for UpdateConfig {
    fn default() -> Self {
        Self {
            prove_for: Duration::from_secs(10 * 60),
            max_failures: 1,
            max_error_rate: ErrorRate::from_basis_points(500),
            max_latency: Factor::from_hundredths(200),
            max_memory: Factor::from_hundredths(200),
            min_requests: 100,
            data_too: false,
        }
    }
}

impl Table for UpdateConfig {
    keys! {
        UpdateConfig;
        /// How long a new version must have run until it is proven. Only time in which it runs counts.
        "prove-for" prove_for = number(Shape::Time(PROVE_FOR));
        /// More failures than this before it is proven, and it goes back. A version that does not come up goes back at
        /// once.
        "max-failures" max_failures = number(Shape::Count(0..=1000));
        /// Share of its requests that may fail. Errors that it answers with itself count only above the rate of the
        /// version before.
        "max-error-rate" max_error_rate = number(Shape::Share(0..=ErrorRate::ALL.basis_points()));
        /// How much longer its requests may take than those of the version before, at the 99th percentile. Differences
        /// under 1 ms do not count.
        "max-latency" max_latency = factor();
        /// How much more linear memory it may have than the version before. Differences under 1 MiB do not count.
        "max-memory" max_memory = factor();
        /// With fewer requests than this, to the new version or to the one before, failures alone decide.
        "min-requests" min_requests = number(Shape::Count(1..=1_000_000));
        /// Whether going back by itself also [restores the data](updates.md#data-of-another-form) from before the
        /// change, if the version that comes back cannot read what is there. What was written since is lost.
        "data-too" data_too = flag();
    }
}

/// A factor in the range of [`Factor`].
fn factor() -> Kind<Factor> {
    text(FACTOR, str::parse::<Factor>).checked(FACTOR.to_owned(), Factor::is_in_range)
}

/// A factor of 1 to 1,000, in steps of a hundredth.
///
/// Written as `"2x"` or `"1.5x"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u32);

/// The text is not a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a factor is written with an `x`, as in `2x` or `1.5x`, and goes from `1x` to `1000x`")]
pub struct FactorError;

impl Factor {
    /// The smallest factor: 1.
    pub const MIN: Self = Self(100);

    /// The largest factor: 1,000.
    pub const MAX: Self = Self(100_000);

    /// A factor in hundredths. Does not check that it is from [`MIN`](Self::MIN) to [`MAX`](Self::MAX).
    #[must_use]
    pub const fn from_hundredths(hundredths: u32) -> Self {
        Self(hundredths)
    }

    /// The number times this factor, rounded down. A result over the type's range becomes its largest value.
    #[must_use]
    pub fn of(self, number: u64) -> u64 {
        let product = u128::from(number).saturating_mul(self.0.into());
        u64::try_from(product / 100).unwrap_or(u64::MAX)
    }

    fn is_in_range(&self) -> bool {
        (Self::MIN..=Self::MAX).contains(self)
    }
}

impl FromStr for Factor {
    type Err = FactorError;

    fn from_str(text: &str) -> Result<Self, FactorError> {
        let number = text.strip_suffix('x').ok_or(FactorError)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 2 {
            return Err(FactorError);
        }
        // The point is between the last two digits and the others.
        let hundredths = format!("{whole}{part:0<2}").parse().map_err(|_| FactorError)?;
        Some(Self(hundredths)).filter(Self::is_in_range).ok_or(FactorError)
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => write!(f, "{whole}x"),
            (whole, part) if part % 10 == 0 => write!(f, "{whole}.{}x", part / 10),
            (whole, part) => write!(f, "{whole}.{part:02}x"),
        }
    }
}

/// A share of requests: 0 % to 100 %, in steps of 0.01 %.
///
/// Written as `"5%"` or `"2.5%"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorRate(u64);

impl ErrorRate {
    /// All requests: 100 %.
    pub const ALL: Self = Self(10_000);

    /// A rate in hundredths of a percent. Does not check that it is at most [`ALL`](Self::ALL).
    #[must_use]
    pub const fn from_basis_points(points: u64) -> Self {
        Self(points)
    }

    /// Hundredths of a percent.
    #[must_use]
    pub const fn basis_points(self) -> u64 {
        self.0
    }
}

impl Number for ErrorRate {
    fn number(&self) -> Option<u64> {
        Some(self.0)
    }

    fn of(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for ErrorRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CpuShare::from_basis_points(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_written_as_it_is_read() {
        for text in ["1x", "1.5x", "2x", "1.05x", "999.99x", "1000x"] {
            assert_eq!(text.parse::<Factor>().unwrap().to_string(), text);
        }
        assert_eq!("1.50x".parse(), Ok(Factor::from_hundredths(150)));
    }

    #[test]
    fn what_is_no_factor_is_refused() {
        let texts = ["", "x", "2", "2X", "0x", "0.99x", "1000.01x", "-2x", "1e1x", "2.x", ".5x", "1.005x"];
        for text in texts.into_iter().chain(["2 x", "99999999999999999999x", "2,5x", "２x"]) {
            assert_eq!(text.parse::<Factor>(), Err(FactorError), "{text}");
        }
    }

    #[test]
    fn a_factor_of_a_number_is_exact_and_never_too_large_for_its_type() {
        assert_eq!(Factor::from_hundredths(150).of(3), 4);
        assert_eq!(Factor::from_hundredths(250).of(1 << 50), 5 << 49);
        assert_eq!(Factor::MIN.of(u64::MAX), u64::MAX);
        assert_eq!(Factor::MAX.of(u64::MAX), u64::MAX);
        assert_eq!(Factor::MAX.of(0), 0);
    }

    #[test]
    fn no_error_and_all_errors_are_rates() {
        let shape = Shape::Share(0..=ErrorRate::ALL.basis_points());
        for text in ["0%", "0.01%", "5%", "100%"] {
            let points = shape.number_in(text).unwrap();
            assert_eq!(ErrorRate::of(points).to_string(), text);
        }
        assert_eq!(shape.number_in("100.01%"), None);
    }
}

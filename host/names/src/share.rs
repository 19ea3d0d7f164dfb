//! A share of the worker thread's time.

use std::{fmt, str::FromStr};

/// A share of the worker thread's time: 0.1 % to 100 %, in steps of 0.01 %.
///
/// Written as `"5%"` or `"2.5%"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuShare(u64);

/// The text is not a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a share is written with a percent sign, as in `5%`, and goes from `0.1%` to `100%`")]
pub struct CpuShareError;

impl CpuShare {
    /// The whole thread: no delays.
    pub const WHOLE: Self = Self(10_000);

    /// The smallest share: 0.1 %.
    pub const MIN: Self = Self(10);

    /// A share in percent, clamped to 1 to 100.
    #[must_use]
    pub const fn percent(percent: u8) -> Self {
        match percent {
            0 => Self(100),
            1..=99 => Self(percent as u64 * 100),
            _ => Self::WHOLE,
        }
    }

    /// A share in hundredths of a percent. Does not check that it is within [`MIN`](Self::MIN) and
    /// [`WHOLE`](Self::WHOLE).
    pub const fn from_basis_points(points: u64) -> Self {
        Self(points)
    }

    /// Reads the hundredths of a percent of a share in any range, as in `2.5%`.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a share.
    pub fn basis_points_in(text: &str) -> Result<u64, CpuShareError> {
        let number = text.strip_suffix('%').ok_or(CpuShareError)?.trim_end();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 2 {
            return Err(CpuShareError);
        }
        let whole: u64 = whole.parse().map_err(|_| CpuShareError)?;
        let part: u64 = format!("{part:0<2}").parse().map_err(|_| CpuShareError)?;
        whole.checked_mul(100).and_then(|points| points.checked_add(part)).ok_or(CpuShareError)
    }

    /// Hundredths of a percent.
    #[must_use]
    pub const fn basis_points(self) -> u64 {
        self.0
    }
}

impl FromStr for CpuShare {
    type Err = CpuShareError;

    fn from_str(text: &str) -> Result<Self, CpuShareError> {
        let share = Self(Self::basis_points_in(text)?);
        if (Self::MIN..=Self::WHOLE).contains(&share) { Ok(share) } else { Err(CpuShareError) }
    }
}

impl fmt::Display for CpuShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => write!(f, "{whole}%"),
            (whole, part) if part % 10 == 0 => write!(f, "{whole}.{}%", part / 10),
            (whole, part) => write!(f, "{whole}.{part:02}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_as_it_is_read() {
        for text in ["0.1%", "0.25%", "5%", "2.5%", "99.99%", "100%", "10.05%"] {
            assert_eq!(text.parse::<CpuShare>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in
            ["", "5", "%", "0%", "0.09%", "100.01%", "101%", "-5%", "1e1%", "nan%", "5.%", ".5%", "5.001%"]
        {
            assert_eq!(text.parse::<CpuShare>(), Err(CpuShareError), "{text}");
        }
        assert!(format!("{}%", u64::MAX).parse::<CpuShare>().is_err());
    }
}

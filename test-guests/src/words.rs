//! Command lines for guests, word by word, and results as text.

use std::fmt::Debug;

/// Splits a line into its first word and the rest.
#[must_use]
pub fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// A whole number.
///
/// # Errors
///
/// Names the word that is not a number.
pub fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// A number that fits `usize`.
///
/// # Errors
///
/// As [`number`].
pub fn count(text: &str) -> Result<usize, String> {
    number(text).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// A value in its `Debug` form.
pub fn text(value: impl Debug) -> String {
    format!("{value:?}")
}

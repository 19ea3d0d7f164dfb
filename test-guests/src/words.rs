//! Command lines for guests, word by word, and results as text.

use std::fmt::Debug;

/// The first word, and what is left of the line.
#[must_use]
pub fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// A whole number.
///
/// # Errors
///
/// Says what is none.
pub fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// A number of things that fit into memory.
///
/// # Errors
///
/// As [`number`].
pub fn count(text: &str) -> Result<usize, String> {
    number(text).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// A value as its `Debug` form.
pub fn text(value: impl Debug) -> String {
    format!("{value:?}")
}

//! Command lines for guests, word by word, their settings, and results as text.

use std::fmt::Debug;

use weir_sdk::raw::config;

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

/// The value of a key in `wasi:config`.
#[must_use]
pub fn setting(key: &str) -> Option<String> {
    config::get(key).ok().flatten()
}

/// A value in its `Debug` form.
pub fn text(value: impl Debug) -> String {
    format!("{value:?}")
}

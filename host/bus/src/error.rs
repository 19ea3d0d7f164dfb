//! Errors for invalid names from extensions.

use std::str::FromStr;

use weir_names::{Error, NameError};

/// Parses a name that an extension gave.
pub(crate) fn parsed<T: FromStr<Err = NameError>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: NameError| Error::Invalid(error.to_string()))
}

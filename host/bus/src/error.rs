//! Names that extensions give, as errors of the bus.

use std::str::FromStr;

use weir_names::{Error, NameError};

/// A name that an extension gave.
pub(crate) fn parsed<T: FromStr<Err = NameError>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: NameError| Error::Invalid(error.to_string()))
}

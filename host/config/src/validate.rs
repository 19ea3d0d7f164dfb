//! What Main checks of an extension's messages.

use std::str::FromStr;

use super::error::quote;

/// What Main checks by the extension's own description of its contracts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Validate {
    /// Nothing.
    #[default]
    Nothing,
    /// Arguments of the requests to it. A request that does not fit is answered, and never delivered.
    Requests,
}

impl Validate {
    /// The name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Requests => "requests",
        }
    }
}

impl FromStr for Validate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nothing" => Ok(Self::Nothing),
            "requests" => Ok(Self::Requests),
            _ => Err(format!("{} is not a kind of check: `nothing` or `requests`", quote(text))),
        }
    }
}

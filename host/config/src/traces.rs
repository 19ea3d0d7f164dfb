//! The detail of failures' traces.

use std::str::FromStr;

use super::error::quote;

/// What a trace says of each running function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Traces {
    /// Its name.
    #[default]
    Functions,
    /// Also its number and offset, for `weir symbolise`. The compiled code is larger.
    Lines,
}

impl Traces {
    /// The name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Lines => "lines",
        }
    }
}

impl FromStr for Traces {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "functions" => Ok(Self::Functions),
            "lines" => Ok(Self::Lines),
            _ => Err(format!("{} is not a kind of trace: `functions` or `lines`", quote(text))),
        }
    }
}

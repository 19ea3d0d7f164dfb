//! What traces of failures tell.

use std::str::FromStr;

use super::error::quote;

/// What the trace of a failure says of each function that was running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Traces {
    /// Its name.
    #[default]
    Functions,
    /// Also its number and the offset in it, of which `weir symbolise` makes lines: it makes the compiled code larger.
    Lines,
}

impl Traces {
    /// As a file has it.
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

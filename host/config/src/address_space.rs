//! How much address space the memories of extensions and hooks may reserve.

use std::str::FromStr;

use super::error::quote;

/// How much address space the memories of extensions and hooks may reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressSpace {
    /// [`Small`](Self::Small) where this process has 39 bits of addresses or less, else [`Large`](Self::Large).
    #[default]
    Auto,
    /// More than 4 GiB for each memory: compiled code needs fewer checks.
    Large,
    /// At most 64 MiB for each memory; a memory that grows further moves.
    Small,
}

impl AddressSpace {
    /// The name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Large => "large",
            Self::Small => "small",
        }
    }
}

impl FromStr for AddressSpace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "large" => Ok(Self::Large),
            "small" => Ok(Self::Small),
            _ => Err(format!("{} is not `auto`, `large` or `small`", quote(text))),
        }
    }
}

//! How much address space the memories of extensions and hooks may reserve.

use crate::words;

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

words!(AddressSpace, "": "auto" = Auto, "large" = Large, "small" = Small);

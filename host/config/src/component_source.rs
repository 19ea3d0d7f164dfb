//! Where the component of an extension comes from.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use bytes::Bytes;

/// Where the component of an extension comes from. It may also be an artifact, which was compiled and signed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComponentSource {
    /// A file, which may have changed by the next start.
    Path(PathBuf),
    /// The memory of the embedding program.
    Bytes(Bytes),
}

impl ComponentSource {
    /// The file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Bytes(_) => None,
        }
    }
}

impl fmt::Debug for ComponentSource {
    /// Without the bytes themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

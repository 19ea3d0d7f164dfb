//! The source of an extension's component.

use std::{
    cmp::Ordering,
    fmt,
    path::{Path, PathBuf},
};

use bytes::Bytes;

/// The source of an extension's component, or of a signed artifact that was compiled from one.
#[derive(Clone)]
pub enum ComponentSource {
    /// A file. It may change before the next start.
    Path(PathBuf),
    /// Memory of the embedding program.
    Bytes(Bytes),
}

impl ComponentSource {
    /// The path of the file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Bytes(_) => None,
        }
    }
}

impl Ord for ComponentSource {
    /// Skips comparing bytes at the same address: many extensions may share a large component.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Path(one), Self::Path(other)) => one.cmp(other),
            (Self::Bytes(one), Self::Bytes(other)) if std::ptr::eq(&**one, &**other) => Ordering::Equal,
            (Self::Bytes(one), Self::Bytes(other)) => {
                one.len().cmp(&other.len()).then_with(|| one.cmp(other))
            }
            (Self::Path(_), Self::Bytes(_)) => Ordering::Less,
            (Self::Bytes(_), Self::Path(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for ComponentSource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ComponentSource {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ComponentSource {}

impl fmt::Debug for ComponentSource {
    /// Leaves out the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

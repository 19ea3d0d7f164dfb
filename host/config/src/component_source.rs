//! Where the component of an extension comes from.

use std::{
    cmp::Ordering,
    fmt,
    path::{Path, PathBuf},
};

use bytes::Bytes;

/// Where the component of an extension comes from. It may also be an artifact, which was compiled and signed.
#[derive(Clone)]
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

impl Ord for ComponentSource {
    /// The same memory is not read: many extensions may share a large component.
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
    /// Without the bytes themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

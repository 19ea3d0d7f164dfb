//! The component of an extension: its source, its configured hash, and trusted keys of artifacts.

use std::{
    cmp::Ordering,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use ed25519_dalek::VerifyingKey;

/// Why a text is not a hash or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactTextError {
    /// The text is not a SHA-256.
    #[error("not a SHA-256, which has 64 hexadecimal digits, as `sha256sum` shows it")]
    Hash,
    /// The text is not a public key.
    #[error("not a public key, which has 44 characters of base64, as `weir keygen` shows it")]
    Key,
}

/// The SHA-256 of a file. As text: 64 hexadecimal digits, which are written in lowercase and read in either case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactHash([u8; 32]);

impl ArtifactHash {
    /// A hash from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for ArtifactHash {
    type Err = ArtifactTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ArtifactTextError::Hash)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for ArtifactHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ArtifactHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArtifactHash({self})")
    }
}

/// The public half of an Ed25519 key (RFC 8032). As text: 44 characters of base64 (RFC 4648).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrustedKey([u8; 32]);

impl TrustedKey {
    /// A key from its bytes, in the encoding of RFC 8032. Not every 32 bytes are a key, and this does not check it.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the key.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for TrustedKey {
    type Err = ArtifactTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = STANDARD.decode(text).map_err(|_| ArtifactTextError::Key)?;
        let bytes = bytes.try_into().map_err(|_| ArtifactTextError::Key)?;
        // Not every number of this size is a point of the curve, and so a key.
        VerifyingKey::from_bytes(&bytes).map_err(|_| ArtifactTextError::Key)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrustedKey({self})")
    }
}

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
    /// Compares paths, or bytes by length and content. Bytes at the same address are equal without a look at them: many
    /// extensions may share a large component.
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
    /// Writes the path, or the number of bytes in place of the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_and_a_key_are_read_as_they_are_shown() {
        let hash = ArtifactHash::from_bytes([0xa5; 32]);
        assert_eq!(hash.to_string().parse(), Ok(hash));
        // RFC 8032, section 7.1, test 1.
        let text = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
        assert_eq!(text.parse::<TrustedKey>().unwrap().to_string(), text);
    }

    #[test]
    fn what_is_too_long_too_short_or_of_other_characters_is_neither() {
        let no_point = TrustedKey::from_bytes([2; 32]).to_string();
        for text in [&*no_point, "", "a5", &"a5".repeat(33), &"zz".repeat(32), &"é".repeat(32)] {
            assert_eq!(text.parse::<ArtifactHash>(), Err(ArtifactTextError::Hash), "{text}");
            assert_eq!(text.parse::<TrustedKey>(), Err(ArtifactTextError::Key), "{text}");
        }
    }
}

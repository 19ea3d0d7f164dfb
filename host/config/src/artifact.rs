//! The configured hash and trusted keys of component files.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::VerifyingKey;

/// Why a text is not a hash or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactTextError {
    /// Not a SHA-256.
    #[error("not a SHA-256, which has 64 hexadecimal digits, as `sha256sum` shows it")]
    Hash,
    /// Not a public key.
    #[error("not a public key, which has 44 characters of base64, as `weir keygen` shows it")]
    Key,
}

/// The SHA-256 of a file. As text: 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
    /// A key from its bytes, in the encoding of RFC 8032.
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
        // Not every number is a point of the curve.
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

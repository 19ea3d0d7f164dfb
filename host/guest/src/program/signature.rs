//! Detached signatures of components: a small text in the file `NAME.wasm.sig` beside the component.
//!
//! The text has these lines, each with a newline at its end, and no other form. The signature (Ed25519, RFC 8032) is
//! over all lines before the last.
//!
//! ```text
//! weir signature 1
//! key 64 hexadecimal digits in lower case
//! id storage
//! version 1.2.0
//! sha256 64 hexadecimal digits in lower case
//! size 123456
//! signature 128 hexadecimal digits in lower case
//! ```

#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use ed25519_dalek::{SIGNATURE_LENGTH, VerifyingKey};
use semver::Version;
use weir_config::{ArtifactHash, TrustedKey};
use weir_names::ExtensionId;

/// The version of the format.
const FORMAT: &str = "1";

/// How the first line begins. It names the purpose, so that nothing signed for another purpose counts.
const PURPOSE: &str = "weir signature ";

/// The signature of a component, which was verified with the key that it names. Whether that key is trusted, and the
/// component the signed one, says [`verify`](Self::verify).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The public half of the key that signed.
    pub key: TrustedKey,
    /// The component's id, by its author.
    pub id: ExtensionId,
    /// The component's version.
    pub version: Version,
    /// The SHA-256 of the component.
    pub sha256: ArtifactHash,
    /// The size of the component, in bytes.
    pub size: u64,
    signature: [u8; SIGNATURE_LENGTH],
}

/// Why a signature does not count, as the rest of a sentence that begins with the component.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The text has another form.
    #[error(
        "has a damaged signature: copy the component and its `.sig` again, or sign it again with `weir sign`"
    )]
    Damaged,
    /// The text is in another format.
    #[error(
        "has a signature of format `{0}`, and this version of Weir reads format {FORMAT}: sign it with `weir sign` of \
         this version"
    )]
    OtherFormat(String),
    /// The lines were changed after they were signed, or were signed with another key.
    #[error(
        "has a signature that the key in it did not make: copy the component and its `.sig` again, or sign it again \
         with `weir sign`"
    )]
    Forged,
    /// The key is not trusted.
    #[error(
        "has a signature of `{0}`, which `main.trusted-keys` does not list: list the key if you trust its owner, or \
         sign the component with one that is listed"
    )]
    Untrusted(TrustedKey),
    /// The signature is of the first of these hashes, and the component has the second.
    #[error(
        "has the SHA-256 `{}`, and its signature is of `{}`: copy the component and its `.sig` again, together",
        .0[1], .0[0]
    )]
    OtherHash(Box<[ArtifactHash; 2]>),
    /// The component has another size than the signed one.
    #[error(
        "has {found} bytes, and its signature is of {signed}: copy the component and its `.sig` again, together"
    )]
    OtherSize {
        /// The size in the signature.
        signed: u64,
        /// The size of the component.
        found: u64,
    },
}

impl Signature {
    /// The most bytes of a signature's text.
    pub const MAX_BYTES: usize = 1024;

    /// The most bytes of a version.
    pub const MAX_VERSION: usize = 64;

    /// The file with the signature of the component at `path`.
    #[must_use]
    pub fn path_of(path: &Path) -> PathBuf {
        let mut name = OsString::from(path);
        name.push(".sig");
        name.into()
    }

    /// Reads a signature, and verifies it with the key that it names.
    ///
    /// # Errors
    ///
    /// Fails if the text is no signature, has another form in any byte, or was not signed with its key.
    pub fn parse(text: &[u8]) -> Result<Self, SignatureError> {
        let text = std::str::from_utf8(text).map_err(|_| SignatureError::Damaged)?;
        if text.len() > Self::MAX_BYTES {
            return Err(SignatureError::Damaged);
        }
        let format = text.split('\n').next().and_then(|first| first.strip_prefix(PURPOSE));
        match format {
            Some(FORMAT) => {}
            Some(other) if !other.is_empty() && other.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(SignatureError::OtherFormat(other.chars().take(16).collect()));
            }
            _ => return Err(SignatureError::Damaged),
        }
        let read = Self::read(text).ok_or(SignatureError::Damaged)?;
        // One signature has one text: no digits in upper case, no zeros in front, nothing after the end.
        if read.text() != text {
            return Err(SignatureError::Damaged);
        }
        VerifyingKey::from_bytes(read.key.as_bytes())
            .and_then(|key| {
                let signature = ed25519_dalek::Signature::from_bytes(&read.signature);
                key.verify_strict(read.signed_lines().as_bytes(), &signature)
            })
            .map_err(|_| SignatureError::Forged)?;
        Ok(read)
    }

    /// Checks that one of these keys signed, and that the component with this hash and size is the signed one.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong first.
    pub fn verify(
        &self,
        trusted: &[TrustedKey],
        sha256: ArtifactHash,
        size: u64,
    ) -> Result<(), SignatureError> {
        if !trusted.contains(&self.key) {
            return Err(SignatureError::Untrusted(self.key));
        }
        if self.size != size {
            return Err(SignatureError::OtherSize { signed: self.size, found: size });
        }
        if self.sha256 != sha256 {
            return Err(SignatureError::OtherHash(Box::new([self.sha256, sha256])));
        }
        Ok(())
    }

    /// The text of the signature, as it is in the file.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}signature {}\n", self.signed_lines(), hex::encode(self.signature))
    }

    /// The lines that are signed.
    fn signed_lines(&self) -> String {
        let Self { key, id, version, sha256, size, .. } = self;
        let key = hex::encode(key.as_bytes());
        format!(
            "{PURPOSE}{FORMAT}\nkey {key}\nid {}\nversion {version}\nsha256 {sha256}\nsize {size}\n",
            id.as_str()
        )
    }

    /// Reads the fields, or returns none if one is missing or is no such thing.
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let mut key = [0; 32];
        hex::decode_to_slice(field("key")?, &mut key).ok()?;
        let id = field("id")?.parse().ok()?;
        let version = Some(field("version")?).filter(|version| version.len() <= Self::MAX_VERSION)?;
        let version = Version::parse(version).ok()?;
        let sha256 = field("sha256")?.parse().ok()?;
        let size = field("size")?.parse().ok()?;
        let mut signature = [0; SIGNATURE_LENGTH];
        hex::decode_to_slice(field("signature")?, &mut signature).ok()?;
        Some(Self { key: TrustedKey::from_bytes(key), id, version, sha256, size, signature })
    }
}

#[cfg(feature = "compiler")]
mod signing {
    //! Makes signatures.

    use ed25519_dalek::SIGNATURE_LENGTH;
    use semver::Version;
    use weir_config::ArtifactHash;
    use weir_names::ExtensionId;

    use super::Signature;
    use crate::program::SigningKey;

    /// The version is not one of semantic versioning, or is too long.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[error(
        "`{0}` is not a version such as `1.2.0` (semver.org) of at most {max} bytes, which a signature needs",
        max = Signature::MAX_VERSION
    )]
    pub struct NotAVersion(String);

    impl Signature {
        /// Signs the component with this id, version, hash and size.
        ///
        /// # Errors
        ///
        /// Fails if the version is not one of semantic versioning, or is too long.
        pub fn sign(
            key: &SigningKey,
            id: ExtensionId,
            version: &str,
            sha256: ArtifactHash,
            size: u64,
        ) -> Result<Self, NotAVersion> {
            let parsed = Version::parse(version).ok().filter(|_| version.len() <= Self::MAX_VERSION);
            let version = parsed.ok_or_else(|| NotAVersion(weir_names::harmless(version, 128)))?;
            let (key_in_it, signature) = (key.trusted_key(), [0; SIGNATURE_LENGTH]);
            let unsigned = Self { key: key_in_it, id, version, sha256, size, signature };
            let signature = key.signature(unsigned.signed_lines().as_bytes());
            Ok(Self { signature, ..unsigned })
        }
    }
}

#[cfg(feature = "compiler")]
pub use signing::NotAVersion;
